/*
 * Two processes on one CPU and an endpoint: what a call and its reply take, 48 bytes
 * each way. Prints `NAME TURNS MEDIAN MINIMUM` in nanoseconds per round trip, as
 * bench/ipc/turns does, which are instructions in a machine that counts them.
 */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "ht_ipc.h"

enum { TURNS = 2000, REPS = 7 };

static int64_t now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000 + t.tv_nsec;
}

static int less(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return (x > y) - (x < y);
}

/* Each call is wanted in line, as a program's own would be. */
static void serve(int fd)
{
	struct ht_message m = {0};
	long rc = ht_ipc_recv(fd, &m, HT_IPC_FOREVER);
	while (rc == 0) {
		m.words[0]++;
		rc = ht_ipc_reply_recv(fd, &m, HT_IPC_FOREVER);
	}
	_exit(1);
}

int main(void)
{
	int fds[2];
	if (ht_ipc_endpoint(fds, 0) != 0)
		return 0; /* another kernel */
	pid_t child = fork();
	if (child == 0)
		serve(fds[0]);
	close(fds[0]);
	struct ht_message m = {.info = ht_ipc_info(48, 0)};
	int64_t took[REPS];
	for (int rep = -1; rep < REPS; rep++) {
		int64_t start = now();
		for (int i = 0; i < TURNS; i++)
			if (ht_ipc_call(fds[1], &m, HT_IPC_FOREVER) != 0) {
				fprintf(stderr, "oneway: a call failed\n");
				return 1;
			}
		if (rep >= 0) /* the first is for the caches of both kernels */
			took[rep] = now() - start;
	}
	if (m.words[0] != (REPS + 1) * TURNS) {
		fprintf(stderr, "oneway: %lu replies\n", (unsigned long)m.words[0]);
		return 1;
	}
	kill(child, SIGKILL);
	qsort(took, REPS, sizeof took[0], less);
	printf("call-c %d %.0f %.0f\n", TURNS, took[REPS / 2] / (double)TURNS, took[0] / (double)TURNS);
	return 0;
}
