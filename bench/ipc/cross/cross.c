// cross counts what it costs when processes on two CPUs meet, in a machine that counts
// instructions: all that both CPUs carried out, less the loops in which the programs
// themselves spent time, which are counted. It prints one line per row, `NAME TURNS
// MEDIAN MINIMUM`, and for rows that are about two CPUs `NAME.apart TURNS MEDIAN
// MINIMUM`: in how many of a hundred turns they were two, by the processor's number
// (CPUID).
//
// Hardtack puts each process where a CPU is free: those that spin are on different CPUs.
// On another system they are pinned; on a machine with one CPU there are two rows only.
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../../../msg/c/ht_ipc.h"

enum { many = 1000, few = 10, reps = 5, work = 400, max_children = 4 };

// What the processes of a row share.
static struct shared {
	uint32_t turn, stop, ack, quiet; // words that are waited for
	uint64_t spun[2], computed;      // turns in spin of two processes, in compute of one
	uint64_t met, apart;             // how often processes met, and how often on two CPUs
	uint32_t at;                     // where the one who wakes is
} *sh;

static int hardtack; // this kernel has message calls

static void die(const char *what)
{
	fprintf(stderr, "cross: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void ok(long rc, const char *what)
{
	if (rc < 0 && rc != -EINTR) {
		errno = (int)-rc;
		die(what);
	}
}

static uint32_t cpu(void)
{
	uint32_t a = 1, b, c = 0, d;
	__asm__ volatile("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
	return b >> 24;
}

// spin waits until a word has a value: five instructions a turn, which are counted.
// PAUSE lets the machine's other CPU go on.
enum { spin_cost = 5, pause_cost = 3 };

static void spin(uint32_t *word, uint32_t value, uint64_t *count)
{
	__asm__ volatile("1: cmpl %1, %0\n\tje 2f\n\tincq %2\n\tpause\n\tjmp 1b\n2:"
			 : "+m"(*word) : "r"(value), "m"(*count) : "memory", "cc");
}

// labour is a server's work: pause_cost instructions a turn.
static void labour(long n)
{
	if (n > 0)
		__asm__ volatile("1: pause\n\tdecq %0\n\tjnz 1b" : "+r"(n) : : "memory", "cc");
}

// compute does that without an end, and lets the other CPU go on now and then only.
enum { block_cost = 404 };

static _Noreturn void compute(uint64_t *count)
{
	for (;;)
		__asm__ volatile("2: movl $200, %%ecx\n1: decl %%ecx\n\tjnz 1b\n\tpause\n\tincq %0\n\tjmp 2b"
				 : "+m"(*count) : : "ecx", "memory", "cc");
}

static int bound; // the rows are about processes that are bound to their CPUs

static void pin(int to)
{
	if (hardtack && !bound)
		return;
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(to, &set);
	sched_setaffinity(0, sizeof set, &set);
}

static uint64_t now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static pid_t children[max_children];
static int nchildren;

// child starts a process that ends with the row.
static int child(int on)
{
	pid_t pid = fork();
	if (pid < 0)
		die("fork");
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pin(on);
		return 1;
	}
	children[nchildren++] = pid;
	return 0;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

// own is what the programs have done for themselves, in loops that are counted.
static uint64_t own(void) { return (sh->spun[0] + sh->spun[1]) * spin_cost + sh->computed * block_cost; }

// row measures how many instructions it takes until two have met, of which less are the
// programs' own. Without sh->met each turn is once.
static void row(const char *name, int turns, void (*turn)(void), double less)
{
	double cost[reps], share[reps];
	for (int i = 0; i < turns / 4 + 1; i++)
		turn();
	for (int r = 0; r < reps; r++) {
		sh->met = sh->apart = 0;
		uint64_t before = own(), start = now();
		for (int i = 0; i < turns; i++)
			turn();
		uint64_t took = now() - start;
		double met = sh->met ? (double)sh->met : turns;
		cost[r] = (double)(took - (own() - before)) / met - less;
		share[r] = 100.0 * (double)sh->apart / met;
	}
	qsort(cost, reps, sizeof *cost, by_value);
	qsort(share, reps, sizeof *share, by_value);
	printf("%s %d %.0f %.0f\n", name, turns, cost[reps / 2], cost[0]);
	if (sh->met)
		printf("%s.apart %d %.0f %.0f\n", name, turns, share[reps / 2], share[0]);
	fflush(stdout);
	for (int i = 0; i < nchildren; i++)
		kill(children[i], SIGKILL), waitpid(children[i], NULL, 0);
	nchildren = 0;
	memset(sh, 0, sizeof *sh);
}

// computes starts a process that computes all the time, on the second CPU.
static void computes(void)
{
	if (child(1))
		compute(&sh->computed);
}

// A way to pass a word to a server and get one back: endpoints, or pipes.
static struct {
	int ep[2];             // endpoint
	int ask[2], tell[2][2]; // pipes: to the server, to each client
} way;

static void make_way(void)
{
	if (hardtack) {
		ok(ht_ipc_endpoint(way.ep, 0), "endpoint");
		return;
	}
	if (pipe(way.ask) || pipe(way.tell[0]) || pipe(way.tell[1]))
		die("pipe");
}

static void close_way(void)
{
	int *all[] = {way.ask, way.tell[0], way.tell[1], way.ep};
	for (int i = 0; i < 4; i++)
		if (all[i][1])
			close(all[i][0]), close(all[i][1]);
	memset(&way, 0, sizeof way);
}

// serve answers for ever, and counts calls from another CPU than it was on before
// (moved), or is on (busy).
static void serve(long n, int moved)
{
	uint32_t last = cpu(), from;
	struct ht_message m = {0};
	char word[2];
	if (hardtack)
		ok(ht_ipc_recv(way.ep[0], &m, HT_IPC_FOREVER), "recv");
	for (;;) {
		if (hardtack)
			from = (uint32_t)m.words[0];
		else if (read(way.ask[0], word, 2) == 2)
			from = (uint32_t)word[1];
		else
			exit(0);
		uint32_t here = cpu();
		sh->met++, sh->apart += moved && hardtack ? here != last : here != from;
		last = here;
		labour(n);
		if (hardtack)
			ok(ht_ipc_reply_recv(way.ep[0], &m, HT_IPC_FOREVER), "reply_recv");
		else if (write(way.tell[(int)word[0]][1], word, 1) != 1)
			exit(0);
	}
}

static void call(int client)
{
	if (hardtack) {
		struct ht_message m = {.words = {cpu()}, .info = ht_ipc_info(8, 0)};
		ok(ht_ipc_call(way.ep[1], &m, HT_IPC_FOREVER), "call");
		return;
	}
	char word[2] = {(char)client, (char)cpu()};
	if (write(way.ask[1], word, 2) != 2 || read(way.tell[client][0], word, 1) != 1)
		die("pipe");
}

static void call_one(void) { call(0); }

// The client and its twin on the other CPU call in turns.
static int twins_call = 1;

static void twin_turn(int me)
{
	spin(&sh->turn, (uint32_t)me, &sh->spun[me]);
	if (twins_call)
		call(me);
	else
		sh->met++;
	__atomic_store_n(&sh->turn, (uint32_t)!me, __ATOMIC_SEQ_CST);
}

static void first_twin(void) { twin_turn(0); }

static void start_server(int on, long n, int moved)
{
	if (child(on))
		serve(n, moved);
}

static void start_twin(int on)
{
	if (child(on))
		for (;;)
			twin_turn(1);
}

static void server_rows(void)
{
	make_way();
	start_server(0, 0, 0);
	row("call", many, call_one, 0);
	if (sysconf(_SC_NPROCESSORS_ONLN) < 2) {
		close_way();
		return;
	}

	// The server comes to the CPU of whoever calls.
	twins_call = 0;
	start_twin(1);
	row("turn", many, first_twin, 0);
	twins_call = 1;
	start_server(0, 0, 1);
	start_twin(1);
	row("call-moved", many, first_twin, 0);

	// The server works when the next call comes, and two clients call all the time. On
	// Linux they are on the other CPU.
	start_server(0, work, 0);
	if (child(1))
		for (;;)
			call(1);
	pin(1);
	row("call-busy", many, call_one, (double)work * pause_cost);
	pin(0);
	if (!hardtack) {
		start_server(1, 0, 0);
		row("call-other", many, call_one, 0);
	}
	close_way();
}

// A way to wake one who waits: a notification, or an eventfd.
static int note[2];

static void make_notes(void)
{
	for (int i = 0; i < 2; i++) {
		long fd = hardtack ? ht_ipc_notification(0) : eventfd(0, 0);
		ok(fd, "notification");
		note[i] = (int)fd;
	}
}

static void rouse(int i)
{
	uint64_t one = 1;
	if (hardtack)
		ok(ht_ipc_signal(note[i], 1), "signal");
	else if (write(note[i], &one, 8) != 8)
		die("write");
}

static void await(int i)
{
	uint64_t bits;
	if (hardtack)
		ok(ht_ipc_wait(note[i], &bits, HT_IPC_FOREVER), "wait");
	else if (read(note[i], &bits, 8) != 8)
		die("read");
}

// The one that is woken says so in memory, where the other, which goes on, sees it.
static void signal_turn(void)
{
	sh->at = cpu();
	rouse(0);
	spin(&sh->ack, 1, &sh->spun[0]);
	sh->ack = 0;
}

static void start_woken(void)
{
	if (child(1))
		for (;;) {
			await(0);
			sh->met++, sh->apart += cpu() != sh->at;
			__atomic_store_n(&sh->ack, 1, __ATOMIC_SEQ_CST);
		}
}

// Both wait for each other.
static void pass_turn(void)
{
	sh->at = cpu();
	rouse(0);
	await(1);
}

// The same with one call for both.
static void pass_one(void)
{
	uint64_t bits;
	sh->at = cpu();
	ok(ht_ipc_signal_wait(note[0], 1, note[1], &bits, HT_IPC_FOREVER), "signal_wait");
}

static void start_passer_one(void)
{
	uint64_t bits;
	if (child(1))
		for (await(0);; ok(ht_ipc_signal_wait(note[1], 1, note[0], &bits, HT_IPC_FOREVER), "signal_wait"))
			sh->met++, sh->apart += cpu() != sh->at;
}

static void start_passer(void)
{
	if (child(1))
		for (;;) {
			await(0);
			sh->met++, sh->apart += cpu() != sh->at;
			rouse(1);
		}
}

static void note_rows(void)
{
	make_notes();
	if (sysconf(_SC_NPROCESSORS_ONLN) < 2) {
		start_passer();
		row("pass", many, pass_turn, 0);
		return;
	}
	start_woken();
	row("signal", many, signal_turn, 0);
	start_woken(), computes();
	row("signal-busy", few, signal_turn, 0);
	start_passer();
	row("pass", many, pass_turn, 0);
	start_passer(), computes();
	row("pass-busy", many, pass_turn, 0);
	if (hardtack) {
		start_passer_one();
		row("pass-one", many, pass_one, 0);
		start_passer_one(), computes();
		row("pass-one-busy", many, pass_one, 0);
	}
	// Two that are bound to two CPUs.
	bound = 1;
	pin(0);
	start_woken();
	row("signal-bound", many, signal_turn, 0);
	start_passer();
	row("pass-bound", many, pass_turn, 0);
	if (hardtack) {
		start_passer_one();
		row("pass-one-bound", many, pass_one, 0);
		make_way();
		start_server(1, 0, 0);
		row("call-bound", many, call_one, 0);
		close_way();
	}
	close(note[0]), close(note[1]);
}

int main(int argc, char **argv)
{
	sh = mmap(NULL, sizeof *sh, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (sh == MAP_FAILED)
		die("mmap");
	struct ht_message m = {0};
	hardtack = ht_ipc_recv(-1, &m, HT_IPC_NOW) == -EBADF;
	pin(0);
	if (argc < 2)
		server_rows();
	note_rows();
	puts("cross: done");
	return 0;
}
