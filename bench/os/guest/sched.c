// What the clock on the wall shows: two CPUs for two computations, and how
// long a spinning process can keep another's timer waiting.
#define _GNU_SOURCE
#include "osbench.h"

#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

static uint64_t compute(uint64_t rounds)
{
	uint64_t x = 88172645463325252u;
	for (uint64_t i = 0; i < rounds; i++)
		x ^= x << 13, x ^= x >> 7, x ^= x << 17;
	return x;
}

// spin N ROUNDS: N processes each compute ROUNDS million steps; prints
// milliseconds until the last has ended.
int spin_main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 2;
	uint64_t rounds = 1000000u * strtoull(argc > 2 ? argv[2] : "200", NULL, 10);
	uint64_t t = now();
	for (int i = 0; i < n; i++) {
		pid_t pid = fork();
		check(pid, "fork");
		if (pid == 0)
			_exit(compute(rounds) == 0);
	}
	for (int i = 0; i < n; i++)
		check(wait(NULL), "wait");
	double ms = (double)(now() - t) / 1e6;
	printf("spin%d 1 %.1f %.1f\n", n, ms, ms);
	return 0;
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return (x > y) - (x < y);
}

// delay MS: sleeps 1 ms again and again beside a spinning process on the same
// CPU; prints how late it woke, median and worst, in milliseconds.
int delay_main(int argc, char **argv)
{
	uint64_t limit = 1000000u * strtoull(argc > 1 ? argv[1] : "2000", NULL, 10);
	static uint64_t late[10000];
	size_t n = 0;
	pin(0);
	pid_t pid = fork();
	check(pid, "fork");
	while (pid == 0) {
		for (int i = 0; i < 3333; i++)
			__asm__ volatile("nop");
		// Where QEMU counts instructions, other processors get none before this or a timer.
		__builtin_ia32_pause();
	}
	for (uint64_t began = now(); now() - began < limit && n < 10000;) {
		struct timespec ts = {0, 1000000};
		uint64_t t = now();
		nanosleep(&ts, NULL);
		uint64_t took = now() - t;
		late[n++] = took > 1000000 ? took - 1000000 : 0;
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	qsort(late, n, sizeof late[0], by_value);
	printf("delay %zu %.3f %.3f\n", n, (double)late[n / 2] / 1e6, (double)late[n - 1] / 1e6);
	return 0;
}

// shares MS: processes of nice 0, 5, 10 and 19 spin beside each other on one CPU; prints
// for each its share of the rounds, in percent.
int shares_main(int argc, char **argv)
{
	static const int nice_of[] = {0, 5, 10, 19};
	enum { N = 4 };
	volatile uint64_t *rounds = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t pid[N];
	pin(0);
	for (int i = 0; i < N; i++) {
		pid[i] = fork();
		check(pid[i], "fork");
		if (pid[i] == 0) {
			check(setpriority(PRIO_PROCESS, 0, nice_of[i]), "setpriority");
			for (;;)
				rounds[8 * i]++;
		}
	}
	usleep(1000 * (argc > 1 ? atoi(argv[1]) : 2000));
	double all = 0;
	for (int i = 0; i < N; i++)
		kill(pid[i], SIGKILL);
	for (int i = 0; i < N; i++) {
		waitpid(pid[i], NULL, 0);
		all += (double)rounds[8 * i];
	}
	for (int i = 0; i < N; i++)
		printf("share%d 1 %.2f %.2f\n", nice_of[i], 100 * rounds[8 * i] / all, 100 * rounds[8 * i] / all);
	return 0;
}
