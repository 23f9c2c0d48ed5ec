// What the programs that measure disks and file systems share: clocks, random
// places, processes that work at once, and instructions beside a spinner.
//
// Instructions, under QEMU's -icount. While a program waits for the disk the
// processor would be idle, and the counting clock would jump. So a second process
// spins all the time and counts its rounds; what the clock shows beyond these rounds
// is the operations': system calls, interrupts, and the switches between the two.
//
// A row prints as `name operations median minimum`, or `name operations rate rate`.
// The program defines PROGRAM, its name, and _GNU_SOURCE before it includes this.
#pragma once

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define BLOCK 4096

static _Noreturn inline void die(const char *what)
{
	printf(PROGRAM ": %s: %s\n", what, strerror(errno));
	exit(1);
}

static inline uint64_t now(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static inline uint64_t ticks(void)
{
	uint32_t lo, hi;
	__asm__ volatile("rdtsc" : "=a"(lo), "=d"(hi)::"memory");
	return (uint64_t)hi << 32 | lo;
}

static uint64_t seed = 88172645463325252ull;

static inline uint64_t next_random(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	return seed ^= seed << 17;
}

static inline char *buffer(void)
{
	char *b = mmap(NULL, BLOCK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (b == MAP_FAILED)
		die("mmap");
	memset(b, 0x5a, BLOCK);
	return b;
}

static inline void rate_line(const char *name, long n, double rate)
{
	printf("%s %ld %.1f %.1f\n", name, n, rate, rate);
	fflush(stdout);
}

// at_once has some processes work for ms milliseconds, and prints what all did. work
// does process p's operations until the time `end` and tells how many they were. A
// process that fails has said why, and there is no row.
static inline void at_once(const char *name, int processes, int ms, long (*work)(int p, uint64_t end, const void *arg), const void *arg)
{
	volatile long *counts = mmap(NULL, BLOCK, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	uint64_t start = now();
	for (int p = 0; p < processes; p++) {
		pid_t pid = fork();
		if (pid < 0)
			die("fork");
		if (pid > 0)
			continue;
		counts[p * 8] = work(p, start + (uint64_t)ms * 1000000u, arg);
		_exit(0);
	}
	int failed = 0, status;
	while (wait(&status) > 0)
		failed |= status;
	double seconds = (double)(now() - start) / 1e9;
	long sum = 0;
	for (int p = 0; p < processes; p++)
		sum += counts[p * 8];
	if (!failed)
		rate_line(name, sum, (double)sum / seconds);
	munmap((void *)counts, BLOCK);
}

static volatile uint64_t *rounds;
static pid_t spinner;

static inline void start_spinner(void)
{
	rounds = mmap(NULL, BLOCK, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if ((spinner = fork()) == 0) {
		setpriority(PRIO_PROCESS, 0, 19);
		for (;;)
			(*rounds)++;
	}
}

static inline void stop_spinner(void)
{
	kill(spinner, SIGKILL);
	wait(NULL);
}

// calibrate is what a round of the spinner takes.
static inline double calibrate(void)
{
	struct timespec ts = {0, 40 * 1000000L};
	uint64_t t = ticks(), c = *rounds;
	nanosleep(&ts, NULL);
	return (double)(ticks() - t) / (double)(*rounds - c);
}

// mark is where a count began; since is what was executed since, beyond the spinner's
// rounds.
struct mark {
	uint64_t ticks, rounds;
};

static inline struct mark mark(void) { return (struct mark){ticks(), *rounds}; }

static inline double since(struct mark m, double round)
{
	return (double)(ticks() - m.ticks) - (double)(*rounds - m.rounds) * round;
}

static inline int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

// count_line prints the median and the least of per, which it sorts.
static inline void count_line(const char *name, double *per, int reps, long n)
{
	qsort(per, reps, sizeof per[0], by_value);
	printf("%s %ld %.0f %.0f\n", name, n, per[reps / 2], per[0]);
	fflush(stdout);
}
