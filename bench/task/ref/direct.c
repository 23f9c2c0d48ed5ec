// A reference in C for the cost of a spawn: a direct task stack with a private
// and a shared part, after the published design of Lace and Wool. A worker's
// word holds tail and split; the owner works below split without atomics.
//
//   direct [calls] fib|stress N WORKERS REPS    prints nanoseconds, a line each
//
// Built as it is, it does the least with which the design is still correct.
// Built with -DLACE it does what Lace's macros do at each spawn and sync: a
// spawn also compares with the end of the stack, marks the task as there and
// looks at a second flag of the worker; a sync also checks whether a thief wants
// work, marks the task as gone and reads the argument back from it.
//
// calls runs the same recursion without tasks, as calls that are not inlined and
// not turned into loops: what a call costs in C.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { STACK = 1 << 16, MAXW = 64 };

typedef struct worker worker;
typedef struct task {
	void (*run)(worker *, struct task *, struct task *); // worker, its head, the task
	uint64_t a, b, c, res;
	_Atomic uint32_t done;
	_Atomic uint32_t there; // with LACE
} __attribute__((aligned(64))) task;

struct worker {
	_Atomic uint32_t want; // read at each spawn
	task *split;           // the owner's copy
	task *end;             // with LACE: the stack is full
	_Atomic uint32_t none; // with LACE: the second flag
	char pad[36];
	_Atomic uint64_t word; // tail << 32 | split
	char pad2[56];
	task *stack;
	unsigned rng;
	int id;
} __attribute__((aligned(64)));

static worker workers[MAXW];
static int nworkers;
static _Atomic int quit;

static inline uint64_t pack(uint32_t t, uint32_t s) { return (uint64_t)t << 32 | s; }

static __attribute__((noinline)) void share(worker *w, task *head) {
	atomic_store_explicit(&w->want, 0, memory_order_relaxed);
	uint64_t old = atomic_load(&w->word);
	for (;;) {
		uint32_t t = old >> 32, s = old, top = head - w->stack, n = s + (top - s + 1) / 2;
		if (top <= s)
			return;
		for (uint32_t i = s; i < n; i++)
			atomic_store_explicit(&w->stack[i].done, 0, memory_order_relaxed);
		if (atomic_compare_exchange_weak(&w->word, &old, pack(t, n))) {
			w->split = w->stack + n;
			return;
		}
	}
}

static __attribute__((noinline)) int take_back(worker *w, task *f) {
	uint32_t i = f - w->stack;
	uint64_t old = atomic_load(&w->word);
	for (;;) {
		uint32_t t = old >> 32;
		if (t > i)
			return 0;
		uint32_t n = t + (i - t) / 2;
		if (atomic_compare_exchange_weak(&w->word, &old, pack(t, n))) {
			w->split = w->stack + n;
			return 1;
		}
	}
}

static task *steal(worker *v) {
	uint64_t old = atomic_load(&v->word);
	for (;;) {
		uint32_t t = old >> 32, s = old;
		if (t >= s) {
			if (!atomic_load_explicit(&v->want, memory_order_relaxed))
				atomic_store_explicit(&v->want, 1, memory_order_relaxed);
			return NULL;
		}
		if (atomic_compare_exchange_weak(&v->word, &old, pack(t + 1, s)))
			return v->stack + t;
	}
}

static int steal_any(worker *w, task *head) {
	if (nworkers < 2)
		return 0;
	w->rng = w->rng * 1103515245 + 12345;
	worker *v = &workers[(w->id + 1 + (w->rng >> 8) % (nworkers - 1)) % nworkers];
	task *f = steal(v);
	if (!f)
		return 0;
	f->run(w, head, f);
	atomic_store_explicit(&f->done, 1, memory_order_release);
	return 1;
}

static __attribute__((noinline)) uint64_t join(worker *w, task *f) {
	while (!atomic_load_explicit(&f->done, memory_order_acquire))
		if (!steal_any(w, f + 1))
			__builtin_ia32_pause();
	uint32_t i = f - w->stack;
	atomic_store(&w->word, pack(i, i));
	w->split = f;
	return f->res;
}

// PUSH writes the task at t; POP is 1 when the caller has it back, with the
// argument ARG.
#ifdef LACE
static __attribute__((noinline)) int pop_slow(worker *w, task *t) {
	if (atomic_load_explicit(&w->want, memory_order_relaxed))
		share(w, t);
	if (t < w->split && !take_back(w, t))
		return 0;
	atomic_store_explicit(&t->there, 0, memory_order_relaxed);
	return 1;
}

#define PUSH(w, t, fn, x) do { \
	if (__builtin_expect((t) == (w)->end, 0)) abort(); \
	(t)->run = fn; \
	(t)->a = (x); \
	atomic_store_explicit(&(t)->there, 1, memory_order_relaxed); \
	atomic_thread_fence(memory_order_release); \
	if (__builtin_expect(atomic_load_explicit(&(w)->none, memory_order_relaxed), 0) || \
		__builtin_expect(atomic_load_explicit(&(w)->want, memory_order_relaxed), 0)) share(w, (t) + 1); } while (0)
#define POP(w, t) (__builtin_expect(!atomic_load_explicit(&(w)->want, memory_order_relaxed), 1) && \
	__builtin_expect((t) >= (w)->split, 1) ? (atomic_store_explicit(&(t)->there, 0, memory_order_relaxed), 1) : pop_slow(w, t))
#define ARG(t, n) ((t)->a)
#else
#define ARG(t, n) (n)
#define PUSH(w, t, fn, x) do { (t)->run = fn; (t)->a = (x); \
	if (__builtin_expect(atomic_load_explicit(&(w)->want, memory_order_relaxed), 0)) share(w, (t) + 1); } while (0)
#define POP(w, t) (__builtin_expect((t) >= (w)->split, 1) || take_back(w, t))
#endif

static uint64_t fib(worker *w, task *t, uint64_t n);
static void fib_task(worker *w, task *t, task *f) { f->res = fib(w, t, f->a); }
static __attribute__((noinline)) uint64_t fib(worker *w, task *t, uint64_t n) {
	if (n < 2)
		return n;
	PUSH(w, t, fib_task, n - 1);
	uint64_t y = fib(w, t + 1, n - 2);
	return (POP(w, t) ? fib(w, t, ARG(t, n - 1)) : join(w, t)) + y;
}

static void stress(worker *w, task *t, uint64_t n);
static void stress_task(worker *w, task *t, task *f) { stress(w, t, f->a); }
static __attribute__((noinline)) void stress(worker *w, task *t, uint64_t n) {
	if (n == 0)
		return;
	PUSH(w, t, stress_task, n - 1);
	stress(w, t + 1, n - 1);
	if (POP(w, t))
		stress(w, t, ARG(t, n - 1));
	else
		join(w, t);
}

#define PLAIN static __attribute__((noinline, noclone, optimize("no-optimize-sibling-calls")))
PLAIN uint64_t seq_fib(uint64_t n) { return n < 2 ? n : seq_fib(n - 1) + seq_fib(n - 2); }
PLAIN void seq_stress(uint64_t n) {
	if (n > 0) {
		seq_stress(n - 1);
		seq_stress(n - 1);
		__asm__ volatile("" ::: "memory");
	}
}

static void *thief(void *p) {
	worker *w = p;
	while (!atomic_load_explicit(&quit, memory_order_relaxed))
		if (!steal_any(w, w->stack))
			__builtin_ia32_pause();
	return NULL;
}

static uint64_t now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

int main(int argc, char **argv) {
	int calls = argc == 6 && !strcmp(argv[1], "calls");
	if (calls) {
		argv++;
		argc--;
	}
	if (argc != 5 || (strcmp(argv[1], "fib") && strcmp(argv[1], "stress"))) {
		fprintf(stderr, "usage: direct [calls] fib|stress N WORKERS REPS\n");
		return 2;
	}
	int n = atoi(argv[2]), reps = atoi(argv[4]);
	nworkers = atoi(argv[3]);
	if (nworkers < 1 || nworkers > MAXW)
		return 2;
	pthread_t th[MAXW];
	for (int i = 0; i < nworkers; i++) {
		workers[i].id = i;
		workers[i].rng = i * 7919 + 1;
		workers[i].stack = aligned_alloc(64, STACK * sizeof(task));
		memset(workers[i].stack, 0, STACK * sizeof(task));
		workers[i].split = workers[i].stack;
		workers[i].end = workers[i].stack + STACK - 1;
	}
	for (int i = 1; i < nworkers; i++)
		pthread_create(&th[i], NULL, thief, &workers[i]);
	worker *w = &workers[0];
	for (int r = 0; r < reps; r++) {
		uint64_t t0 = now(), v = 0;
		int is_fib = !strcmp(argv[1], "fib");
		if (calls && is_fib)
			v = seq_fib(n);
		else if (calls)
			seq_stress(n);
		else if (is_fib)
			v = fib(w, w->stack, n);
		else
			stress(w, w->stack, n);
		uint64_t t1 = now();
		if (is_fib && v != seq_fib(n)) {
			fprintf(stderr, "wrong result\n");
			return 1;
		}
		printf("%llu\n", (unsigned long long)(t1 - t0));
	}
	atomic_store(&quit, 1);
	for (int i = 1; i < nworkers; i++)
		pthread_join(th[i], NULL);
	return 0;
}
