// osbench measures one operating system from user mode, one row of the table
// in docs/bench/os.md at a time.
//
//	osbench [-t] [-r REPS] [-u UNITS] [NAME...]   rows; -t counts TSC ticks, which
//	                                              under QEMU's -icount are instructions
//	osbench list                                  the names
//	osbench spin N MS                             N processes compute, time until all end
//	osbench delay MS                              a sleeper's worst delay beside a spinner
//
// A row prints as `name iterations median minimum`, per operation.
#define _GNU_SOURCE
#include "osbench.h"

#include <sched.h>
#include <time.h>

static int use_tsc;
static uint64_t began, spent;

uint64_t now(void)
{
	if (use_tsc) {
		uint32_t lo, hi;
		__asm__ volatile("rdtsc" : "=a"(lo), "=d"(hi)::"memory");
		return (uint64_t)hi << 32 | lo;
	}
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

void start(void) { began = now(); }
void stop(void) { spent = now() - began; }
void took(uint64_t units) { spent = units; }

void die(const char *what)
{
	fprintf(stderr, "osbench: %s: %s\n", what, strerror(errno));
	exit(1);
}

void check(long rc, const char *what)
{
	if (rc < 0)
		die(what);
}

// pin is best effort: one CPU needs none, and a kernel without affinity runs
// the rows all the same.
void pin(int cpu)
{
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof set, &set);
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

// measure finds the iteration count that fills `units`, which also warms
// caches and pools up, then takes the median and minimum of reps runs.
static void measure(const bench *b, int reps, uint64_t units)
{
	long n = 1;
	for (;;) {
		b->run(n);
		if (spent >= units / 4 || n >= 1L << 24)
			break;
		uint64_t per = spent / (uint64_t)n + 1;
		long want = (long)(units / 3 / per);
		if (want > n * 8)
			want = n * 8;
		n = want > n ? want : n * 2;
	}
	n = (long)((double)n * (double)units / (double)(spent + 1)) + 1;

	double per[64];
	if (reps > 64)
		reps = 64;
	for (int i = 0; i < reps; i++) {
		b->run(n);
		per[i] = (double)spent / (double)n / (double)b->batch;
	}
	qsort(per, (size_t)reps, sizeof per[0], by_value);
	printf("%s %ld %.1f %.1f\n", b->name, n * b->batch, per[reps / 2], per[0]);
	fflush(stdout);
}

static const bench *const groups[] = {micro_benches, ipc_benches, server_benches};

int main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "exit") == 0)
		_exit(0);
	if (argc > 1 && strcmp(argv[1], "spin") == 0)
		return spin_main(argc - 1, argv + 1);
	if (argc > 1 && strcmp(argv[1], "delay") == 0)
		return delay_main(argc - 1, argv + 1);
	if (argc > 1 && strcmp(argv[1], "shares") == 0)
		return shares_main(argc - 1, argv + 1);
	if (argc > 1 && strcmp(argv[1], "online") == 0)
		return online_main();
	if (argc > 1 && strcmp(argv[1], "crowd") == 0)
		return crowd_main();
	if (argc > 1 && strcmp(argv[1], "talk") == 0)
		return talk_main(argc - 1, argv + 1);
	if (argc > 1 && strcmp(argv[1], "hack") == 0)
		return hack_main(argc - 1, argv + 1);
	if (argc > 1 && strcmp(argv[1], "load") == 0)
		return load_main(argc - 1, argv + 1);
	if (argc > 1 && strcmp(argv[1], "urgent") == 0)
		return urgent_main(argc - 1, argv + 1);

	int reps = 5, opt;
	uint64_t units = 20000000;
	while ((opt = getopt(argc, argv, "tr:u:")) != -1) {
		switch (opt) {
		case 't': use_tsc = 1; break;
		case 'r': reps = atoi(optarg); break;
		case 'u': units = strtoull(optarg, NULL, 10); break;
		default: return 2;
		}
	}
	int list = optind < argc && strcmp(argv[optind], "list") == 0;
	int found = 0;
	pin(0);
	for (size_t g = 0; g < sizeof groups / sizeof groups[0]; g++) {
		for (const bench *b = groups[g]; b->name; b++) {
			int wanted = optind == argc && groups[g] != server_benches;
			for (int i = optind; i < argc; i++)
				wanted |= strcmp(argv[i], b->name) == 0;
			if (list)
				puts(b->name);
			else if (wanted)
				measure(b, reps, units), found++;
		}
	}
	if (!list && !found) {
		fprintf(stderr, "osbench: no such row; `osbench list` names them\n");
		return 2;
	}
	return 0;
}
