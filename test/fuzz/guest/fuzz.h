// What the parts of the fuzzer share; main.c says what it is.
#pragma once
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../../../msg/c/ht_ipc.h"

enum {
	workers = 3,
	calls_per_child = 3000, // of one worker
	page = 4096,
	max_children = 16,
	ring_calls = 63,
	user = 1000,    // whom the kernel must keep in
	witness = 1001, // who must not notice
};

// The last calls of a worker: one page, which the machine's host finds in the
// machine's memory when the kernel has stopped (test/fuzz/ring.go).
typedef struct {
	char magic[8]; // "HTFUZZ01"
	uint64_t seed, child, worker, count;
	int32_t pid, uid;
	uint64_t unused[2];
	struct {
		uint64_t nr, args[6];
		int64_t result; // not_yet while the call lasts
	} call[ring_calls];
} ring;
_Static_assert(sizeof(ring) == page, "the host looks at pages");
enum { not_yet = -1000000 };

// A child's part of what it shares with the parent. A child can spoil it, so the parent
// believes only plausible values.
typedef struct {
	ring ring[workers];
	volatile uint64_t calls[workers];
	volatile uint64_t broken; // BREACH and what the child saw
	volatile uint64_t seen[3]; // memory_not_zero: address, index and value of a word
	char rest[page - 8 * (workers + 4)];
} slot;

// What a child saw that must not be. Random writes do not look like it.
#define BREACH 0xb4eac4ed5eed0000UL
enum breach { none, root_gained, secret_seen, memory_not_zero };

// Kinds of descriptors. Those of sockets come first.
enum kind {
	k_unix, k_dgram, k_seqpacket, k_tcp, k_listener, k_udp, k_raw, k_netlink, k_sockets,
	k_tmpfs = k_sockets, k_ext4, k_memfd, k_sealed, k_regs,
	k_dir = k_regs, k_dir2, k_dirs,
	k_pipe_in = k_dirs, k_pipe_out, k_fifo, k_pipes,
	k_epoll = k_pipes, k_epoll2, k_event, k_timer, k_signal, k_inotify, k_pid, k_pid2,
	k_master, k_slave, k_null, k_zero, k_random, k_maps, k_mem, k_status, k_path,
	k_receive, k_send, k_note, k_kinds,
};
// Addresses that lie far from everything else.
static const uintptr_t fresh_at = 0x100000000000, slots_at = 0x200000000000, paths_at = 0x300000000000;

enum { fd_base = 8 }; // descriptor of kind k is fd_base+k, or was

// A worker. Nothing of it is in thread-local storage, which calls move.
typedef struct {
	uint64_t rng;
	ring *ring;
	char *slots; // scratch for structures: 64 of 512 bytes
	unsigned slot;
	char *fresh; // where look maps pages that nobody else may have: far from all others
	uintptr_t last;  // the last buffer
	size_t last_len; // and what fits it
	volatile pid_t tid;
	int number;
	char stack[64 << 10] __attribute__((aligned(16)));
} thread;

// What all workers of a child share.
typedef struct {
	uint64_t number;
	uid_t uid;
	pid_t pid;
	slot *slot;
	char *buffers; // 32 pages
	char *paths;   // strings, 128 bytes each
	int npaths, nnames;
	char *area;     // where mappings come and go: area_pages
	char *readonly; // a page
	char *edge;     // the end of the last page of a mapping, nothing behind it
	char *beyond;   // the page of a mapping behind the end of its file
	char *shared;   // pages that all children share
	volatile int recent[8];
	const char *groups; // of races, or NULL
	int focus[3];       // descriptors of a race
	volatile uint64_t token;
} child_state;

enum { area_pages = 64, buffer_pages = 32, path_size = 128, mount_name = 15 };

extern child_state me;
extern thread worker[workers];
extern uint64_t seed;
extern pid_t parent_pid, guard_pid, witness_pid;
extern char *common; // shared by all children
extern int have_disk;

// A call of calls.def.
typedef struct {
	short nr;
	const char *name, *groups, *words;
	struct {
		short kind, set;
	} arg[6];
	int args;
} call;
extern call calls[];
extern const int ncalls;
void parse_calls(void);
const call *find_call(int nr);

static inline uint64_t next(uint64_t *s)
{
	uint64_t x = *s;
	x ^= x << 13, x ^= x >> 7, x ^= x << 17;
	*s = x;
	return (x * 0x2545f4914f6cdd1d) >> 16;
}

// raw makes a system call without touching thread-local storage.
static inline __attribute__((always_inline)) long raw(long nr, long a, long b, long c, long d, long e, long f)
{
	long rc;
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	__asm__ volatile("syscall" : "=a"(rc) : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9) : "rcx", "r11", "memory");
	return rc;
}

static inline int one_in(thread *t, unsigned n) { return next(&t->rng) % n == 0; }
static inline unsigned below(thread *t, unsigned n) { return (unsigned)(next(&t->rng) % n); }

uint64_t argument(thread *t, int kind, int set); // value.c
int word(const char *text, int length, short *kind, short *set);
uint64_t boundary(thread *t);
uint64_t wild(thread *t);
void open_kind(thread *t, int kind); // files.c
void make_names(void);
void message(thread *t); // message.c
_Noreturn void child(uint64_t number, uid_t uid, slot *at); // child.c
_Noreturn void instructions(thread *t);
void races(thread *t); // races.c

int suid_main(void); // guard.c
void set_scene(void);
void look_around(void);
const char *end_scene(void);
int secret_in(const void *at, size_t len);
extern volatile uint64_t *progress;
const char *complaint(void);

void right_mounts(int all); // right.c
void right_modes(void);

void remove_tree(const char *path); // left.c
void remove_left(void);

void fail(const char *format, ...); // main.c
extern int failures;
