/*
 * The references for bench/msg in C: what the machine can do. Two processes,
 * pinned, share memory:
 *
 *   line N       round trip through one cache line
 *   ring N S     round trip of S bytes through rings of 64-byte slots, polled
 *   flow N S     one way of S bytes through the same; over 56 bytes by a pool
 *   sides N S    what flow takes on either side by itself, when no cache line moves:
 *                two figures, of the send and the receipt
 *   futex N      round trip with both sides asleep in futex(2)
 *   place N S    how many times longer a round trip takes on the worst of S pairs
 *                of pages than on the best
 *
 * usage: ref MODE COUNT SIZE CPU CPU
 * prints nanoseconds per operation.
 *
 * The ring is that of msg/internal/ring as one would write it in C: a page, 60
 * slots of 56 bytes and a header with lap, length and the acknowledgement of
 * the other direction; where nothing flows back, an acknowledgement word,
 * stored every quarter of the ring. The receiver copies what is in a slot, and
 * reads what is in the pool in place, a word a line.
 */
#define _GNU_SOURCE
#include <linux/futex.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

enum { SLOTS = 60, POOL = 256 << 10 };

struct slot {
	uint8_t body[56];
	_Atomic uint64_t hdr;
};

struct ring {
	_Atomic uint32_t ack;
	uint8_t pad[252];
	struct slot slot[SLOTS];
};

struct tx {
	struct ring *r;
	unsigned at, lap;
	uint32_t sent, acked;
};

struct rx {
	struct ring *r;
	unsigned at, lap;
	uint32_t count;
};

static struct ring *rings;
static uint8_t *pool;
static volatile uint64_t sink;

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e9 + t.tv_nsec;
}

static void pin(int cpu)
{
	cpu_set_t s;
	CPU_ZERO(&s);
	CPU_SET(cpu, &s);
	if (sched_setaffinity(0, sizeof s, &s)) {
		perror("sched_setaffinity");
		exit(1);
	}
}

static inline void put(struct tx *t, struct rx *back, const void *body, unsigned n)
{
	while (t->sent - t->acked >= SLOTS)
		t->acked = atomic_load_explicit(&t->r->ack, memory_order_acquire);
	struct slot *s = &t->r->slot[t->at];
	memcpy(s->body, body, n);
	uint64_t ack = back ? back->count & 0xffff : 0;
	atomic_store_explicit(&s->hdr, t->lap | 1 << 16 | ack << 32 | (uint64_t)n << 48, memory_order_release);
	t->sent++;
	if (++t->at == SLOTS) {
		t->at = 0;
		t->lap = (t->lap + 1) & 0xffff;
	}
}

static inline unsigned get(struct rx *r, struct tx *back, void *body)
{
	struct slot *s = &r->r->slot[r->at];
	uint64_t h;
	while (((h = atomic_load_explicit(&s->hdr, memory_order_acquire)) & 0xffff) != r->lap)
		;
	unsigned n = h >> 48 & 63;
	memcpy(body, s->body, 56);
	r->count++;
	if (++r->at == SLOTS) {
		r->at = 0;
		r->lap = (r->lap + 1) & 0xffff;
	}
	if (back)
		back->acked = (back->sent & ~0xffffu) | (h >> 32 & 0xffff), back->acked -= back->acked > back->sent ? 0x10000 : 0;
	else if (r->count % (SLOTS / 4) == 0)
		atomic_store_explicit(&r->r->ack, r->count, memory_order_release);
	return n;
}

static double ring_trip(long n, unsigned size, int child)
{
	struct tx t = {&rings[child], 0, 1, 0, 0};
	struct rx r = {&rings[!child], 0, 1, 0};
	uint8_t b[56] = {0};
	double t0 = 0;
	for (long i = -n / 10; i < n; i++) {
		if (i == 0)
			t0 = now();
		if (!child)
			put(&t, &r, b, size);
		get(&r, &t, b);
		if (child)
			put(&t, &r, b, size);
	}
	return (now() - t0) / n;
}

static double flow(long n, unsigned size, int child)
{
	struct tx t = {&rings[0], 0, 1, 0, 0};
	struct rx r = {&rings[0], 0, 1, 0};
	struct rx done = {&rings[1], 0, 1, 0};
	struct tx tell = {&rings[1], 0, 1, 0, 0};
	uint8_t b[56] = {0};
	static uint8_t src[1 << 20];
	unsigned chunks = size > 56 ? POOL / size : 0;
	double t0 = 0;
	for (long i = -n / 10; i < n; i++) {
		if (i == 0)
			t0 = now();
		if (size <= 56) {
			if (child) {
				get(&r, 0, b);
				sink += b[0];
			} else {
				memcpy(b, &i, 8);
				put(&t, 0, b, size);
			}
			continue;
		}
		if (child) {
			uint32_t off;
			get(&r, 0, b);
			memcpy(&off, b, 4);
			uint64_t s = 0;
			for (unsigned k = 0; k < size; k += 64)
				s += *(volatile uint64_t *)(pool + off + k);
			sink += s;
			atomic_store_explicit(&r.r->ack, r.count, memory_order_release);
		} else {
			uint32_t off = (t.sent % chunks) * size;
			while (t.sent - t.acked >= (chunks < SLOTS ? chunks : SLOTS))
				t.acked = atomic_load_explicit(&t.r->ack, memory_order_acquire);
			memcpy(src, &i, 8);
			memcpy(pool + off, src, size);
			memcpy(b, &off, 4);
			put(&t, 0, b, 12);
		}
	}
	if (child)
		put(&tell, 0, b, 1);
	else
		get(&done, 0, b);
	return (now() - t0) / n;
}

/* One process does both, by turns, a batch that fits into the ring each. */
static void sides(long n, unsigned size)
{
	enum { BATCH = 50 };
	struct tx t = {&rings[0], 0, 1, 0, 0};
	struct rx r = {&rings[0], 0, 1, 0};
	uint8_t b[56] = {0};
	double send = 1e18, recv = 1e18;
	for (long i = 0; i < n; i += BATCH) {
		double begun = now();
		for (long k = i; k < i + BATCH; k++) {
			memcpy(b, &k, 8);
			put(&t, 0, b, size);
		}
		double sent = now();
		for (int k = 0; k < BATCH; k++) {
			get(&r, 0, b);
			sink += b[0];
		}
		double end = now();
		atomic_store_explicit(&r.r->ack, r.count, memory_order_release);
		send = sent - begun < send ? sent - begun : send;
		recv = end - sent < recv ? end - sent : recv;
	}
	printf("%.2f %.2f\n", send / BATCH, recv / BATCH);
}

static double line(long n, int child)
{
	_Atomic uint64_t *p = (void *)&rings[0];
	double t0 = 0;
	for (long i = -n / 10; i < n; i++) {
		uint64_t k = 2 * (i + n);
		if (i == 0)
			t0 = now();
		if (!child)
			atomic_store_explicit(p, k + 1, memory_order_release);
		while (atomic_load_explicit(p, memory_order_acquire) != k + 1 + !child)
			;
		if (child)
			atomic_store_explicit(p, k + 2, memory_order_release);
	}
	return (now() - t0) / n;
}

/*
 * How much it matters where a ring lies: of so many pairs of pages, each timed
 * REPEAT times in turn, the slowest median beside the fastest.
 */
enum { REPEAT = 9, MOST = 256 };

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static double place(long n, unsigned pairs, int child)
{
	static double took[MOST][REPEAT];
	double least = 1e18, most = 0;
	for (unsigned round = 0; round < REPEAT; round++)
		for (unsigned k = 0; k < pairs; k++) {
			struct ring *both = (struct ring *)pool + 2 * k;
			_Atomic uint64_t *mine = (void *)&both[child], *theirs = (void *)&both[!child];
			double t0 = now();
			for (long i = 1; i <= n; i++) {
				unsigned line = 8 * (4 + i % 60);
				uint64_t v = round * n + i;
				if (!child)
					atomic_store_explicit(mine + line, v, memory_order_release);
				while (atomic_load_explicit(theirs + line, memory_order_acquire) != v)
					;
				if (child)
					atomic_store_explicit(mine + line, v, memory_order_release);
			}
			took[k][round] = (now() - t0) / n;
		}
	for (unsigned k = 0; k < pairs; k++) {
		qsort(took[k], REPEAT, sizeof(double), by_size);
		double median = took[k][REPEAT / 2];
		least = median < least ? median : least;
		most = median > most ? median : most;
	}
	return most / least;
}

static long futex(_Atomic uint32_t *p, int op, uint32_t v)
{
	return syscall(SYS_futex, p, op, v, 0, 0, 0);
}

static double futex_trip(long n, int child)
{
	_Atomic uint32_t *mine = &rings[child].ack, *theirs = &rings[!child].ack;
	double t0 = 0;
	for (long i = -n / 10; i < n; i++) {
		if (i == 0)
			t0 = now();
		if (!child) {
			atomic_store(theirs, 1);
			futex(theirs, FUTEX_WAKE, 1);
		}
		while (atomic_load(mine) == 0)
			futex(mine, FUTEX_WAIT, 0);
		atomic_store(mine, 0);
		if (child) {
			atomic_store(theirs, 1);
			futex(theirs, FUTEX_WAKE, 1);
		}
	}
	return (now() - t0) / n;
}

static double run(const char *mode, long n, unsigned size, int child)
{
	if (!strcmp(mode, "line"))
		return line(n, child);
	if (!strcmp(mode, "ring"))
		return ring_trip(n, size, child);
	if (!strcmp(mode, "flow"))
		return flow(n, size, child);
	if (!strcmp(mode, "place") && size <= MOST && size * 2 * sizeof(struct ring) <= POOL)
		return place(n, size, child);
	if (!strcmp(mode, "futex"))
		return futex_trip(n, child);
	fprintf(stderr, "ref: no mode %s\n", mode);
	exit(2);
}

int main(int argc, char **argv)
{
	if (argc != 6) {
		fprintf(stderr, "usage: ref MODE COUNT SIZE CPU CPU\n");
		return 2;
	}
	long n = atol(argv[2]);
	unsigned size = atoi(argv[3]);
	rings = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pool = mmap(0, POOL, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (rings == MAP_FAILED || pool == MAP_FAILED || sizeof(struct ring) != 4096 || size > POOL / 2) {
		fprintf(stderr, "ref: no memory, or a size over %d\n", POOL / 2);
		return 1;
	}
	if (!strcmp(argv[1], "sides") && size <= 56) {
		pin(atoi(argv[4]));
		sides(n, size);
		return 0;
	}
	pid_t parent = getpid(), kid = fork();
	if (kid < 0) {
		perror("fork");
		return 1;
	}
	if (kid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			return 1;
		pin(atoi(argv[5]));
		run(argv[1], n, size, 1);
		return 0;
	}
	pin(atoi(argv[4]));
	double ns = run(argv[1], n, size, 0);
	waitpid(kid, 0, 0);
	printf("%.2f\n", ns);
	return 0;
}
