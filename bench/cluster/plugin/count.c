// count: a plugin for QEMU that counts the instructions of each virtual processor. A clock
// that counts instructions counts those of all processors together, so that a program
// which reads it sees its neighbours' work in its own times. This sees each one alone.
//
//	-plugin count.so,out=FILE[,insns=on]
//
// A program marks a place with a long no-operation, nopl 0x4854NNNN(%rax,%rax,1), NNNN
// being the number of the mark. Each execution writes a line `mark CPU NUMBER OWN HALTED ALL WOKEN`:
// the instructions of that processor so far, those of the others while it was halted,
// those of all, and those of that processor since it was last halted. Between marks 3 and 4 it counts by address, too, and writes a line
// `pc ADDRESS INSTRUCTIONS CPU` for each block of code at the end, or with insns=on for each
// instruction. A mark from 16 on writes `cpus NUMBER N…`, the instructions of each processor so far.
//
// QEMU may run its processors in threads of their own. Then ALL and what follows from it lack
// some, and the other processors in a line `cpus` may be a few blocks behind.
//
// The declarations are those of QEMU's plugin interface, version 1, whose header is not
// part of its packages.
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint64_t plugin_id;
struct qemu_plugin_tb;
struct qemu_plugin_insn;

void qemu_plugin_register_vcpu_tb_trans_cb(plugin_id, void (*)(plugin_id, struct qemu_plugin_tb *));
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *, void (*)(unsigned, void *), int, void *);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *, void (*)(unsigned, void *), int, void *);
void qemu_plugin_register_atexit_cb(plugin_id, void (*)(plugin_id, void *), void *);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *);
uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *, size_t);
const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *);

__attribute__((visibility("default"))) int qemu_plugin_version = 1;

uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *);
int qemu_plugin_n_vcpus(void);

enum { CPUS = 64, COUNT_ON = 3, COUNT_OFF = 4, SHOW_CPUS = 16 };

static FILE *out;
static uint64_t own[CPUS], halted[CPUS], halted_at[CPUS], woken_at[CPUS], all;
static bool is_halted[CPUS], counting, each;

struct block {
	struct block *next;
	uint64_t address, insns, runs[CPUS];
	uint64_t *addresses; // of the instructions, or null
};

static struct block *blocks;

struct mark {
	unsigned number;
	uint64_t behind; // instructions of the block from the mark on
};

static void on_block(unsigned cpu, void *data) {
	struct block *b = data;
	if (cpu >= CPUS)
		return;
	if (is_halted[cpu]) {
		is_halted[cpu] = false;
		woken_at[cpu] = own[cpu];
		halted[cpu] += all - halted_at[cpu];
	}
	own[cpu] += b->insns;
	all += b->insns;
	if (counting)
		b->runs[cpu]++;
}

static void on_halt(unsigned cpu, void *data) {
	if (cpu >= CPUS)
		return;
	is_halted[cpu] = true;
	halted_at[cpu] = all;
}

static void on_mark(unsigned cpu, void *data) {
	struct mark *m = data;
	if (cpu >= CPUS)
		return;
	if (m->number == COUNT_ON || m->number == COUNT_OFF)
		counting = m->number == COUNT_ON;
	if (m->number >= SHOW_CPUS) {
		char line[32 + CPUS * 21];
		int n = sprintf(line, "cpus %u", m->number);
		for (int i = 0; i < CPUS && i < qemu_plugin_n_vcpus(); i++)
			n += sprintf(line + n, " %" PRIu64, own[i]);
		fprintf(out, "%s\n", line);
		return;
	}
	fprintf(out, "mark %u %u %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", cpu, m->number, own[cpu] - m->behind, halted[cpu],
		all - m->behind, own[cpu] - m->behind - woken_at[cpu]);
}

static void *must(void *p) {
	if (!p)
		abort();
	return p;
}

static void on_translate(plugin_id id, struct qemu_plugin_tb *tb) {
	struct block *b = must(calloc(1, sizeof *b));
	b->address = qemu_plugin_tb_vaddr(tb);
	b->insns = qemu_plugin_tb_n_insns(tb);
	if (each)
		b->addresses = must(calloc(b->insns, sizeof *b->addresses));
	b->next = __atomic_load_n(&blocks, __ATOMIC_RELAXED);
	while (!__atomic_compare_exchange_n(&blocks, &b->next, b, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
		;
	qemu_plugin_register_vcpu_tb_exec_cb(tb, on_block, 0, b);
	for (size_t i = 0; i < b->insns; i++) {
		struct qemu_plugin_insn *in = qemu_plugin_tb_get_insn(tb, i);
		const uint8_t *code = qemu_plugin_insn_data(in);
		size_t n = qemu_plugin_insn_size(in);
		if (each)
			b->addresses[i] = qemu_plugin_insn_vaddr(in);
		if (n == 1 && code[0] == 0xf4)
			qemu_plugin_register_vcpu_insn_exec_cb(in, on_halt, 0, NULL);
		if (n == 8 && !memcmp(code, "\x0f\x1f\x84\x00", 4) && code[6] == 0x54 && code[7] == 0x48) {
			struct mark *m = must(calloc(1, sizeof *m));
			m->number = code[4] | code[5] << 8;
			m->behind = b->insns - i;
			qemu_plugin_register_vcpu_insn_exec_cb(in, on_mark, 0, m);
		}
	}
}

static void on_end(plugin_id id, void *data) {
	for (struct block *b = blocks; b; b = b->next)
		for (int cpu = 0; cpu < CPUS; cpu++) {
			if (b->runs[cpu] && !each)
				fprintf(out, "pc %" PRIx64 " %" PRIu64 " %d\n", b->address, b->runs[cpu] * b->insns, cpu);
			for (uint64_t i = 0; each && b->runs[cpu] && i < b->insns; i++)
				fprintf(out, "pc %" PRIx64 " %" PRIu64 " %d\n", b->addresses[i], b->runs[cpu], cpu);
		}
	fclose(out);
}

__attribute__((visibility("default"))) int qemu_plugin_install(plugin_id id, const void *info, int argc, char **argv) {
	each = argc == 2 && !strcmp(argv[1], "insns=on");
	if (argc != 1 + each || strncmp(argv[0], "out=", 4) || !(out = fopen(argv[0] + 4, "w"))) {
		fprintf(stderr, "count: want out=FILE[,insns=on]\n");
		return -1;
	}
	setvbuf(out, NULL, _IOFBF, 1 << 20);
	qemu_plugin_register_vcpu_tb_trans_cb(id, on_translate);
	qemu_plugin_register_atexit_cb(id, on_end, NULL);
	return 0;
}
