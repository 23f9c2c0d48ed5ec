// Threads that wake each other, on one CPU or several. Times are those of the clock; where
// it counts instructions, those of all CPUs together.
#define _GNU_SOURCE
#include "osbench.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return (x > y) - (x < y);
}

// compute takes 10,000 instructions a round. A QEMU that counts instructions runs one CPU
// until a timer is due, and another CPU only after a pause or halt. Without the pause the
// other CPUs would stand still.
static void compute(int rounds)
{
	for (int i = 0; i < rounds; i++) {
		for (int j = 0; j < 3333; j++)
			__asm__ volatile("nop");
		__builtin_ia32_pause();
	}
}

static pid_t spinner(void)
{
	pid_t pid = fork();
	check(pid, "fork");
	while (pid == 0)
		compute(1);
	return pid;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	check(waitpid(pid, NULL, 0), "waitpid");
}

// online: starts the CPUs that do not run yet. Linux waits for each in a loop without a
// pause (see compute), so another process pauses meanwhile.
int online_main(void)
{
	pid_t pid = spinner();
	for (int cpu = 1; cpu < sysconf(_SC_NPROCESSORS_CONF); cpu++) {
		char path[100];
		snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/online", cpu);
		int fd = open(path, O_WRONLY);
		check(fd, path);
		check(write(fd, "1", 1), path);
		close(fd);
	}
	end(pid);
	return 0;
}

static void moved(ssize_t n, size_t want)
{
	if (n != (ssize_t)want)
		die("a message was lost");
}

// talk ROUNDS [apart]: two processes send a byte to and fro over pipes, wherever they are
// put, or each with a CPU of its own.
int talk_main(int argc, char **argv)
{
	enum { REPS = 5 };
	long rounds = argc > 1 ? atol(argv[1]) : 2000;
	int apart = argc > 2;
	uint64_t took[REPS];
	int to[2], from[2];
	char c = 0;
	check(pipe(to), "pipe"), check(pipe(from), "pipe");
	pid_t pid = fork();
	check(pid, "fork");
	if (apart)
		pin(pid == 0);
	if (pid == 0)
		for (;;)
			moved(read(to[0], &c, 1), 1), moved(write(from[1], &c, 1), 1);
	for (int r = 0; r < REPS; r++) {
		uint64_t t = now();
		for (long i = 0; i < rounds; i++)
			moved(write(to[1], &c, 1), 1), moved(read(from[0], &c, 1), 1);
		took[r] = now() - t;
	}
	end(pid);
	qsort(took, REPS, sizeof took[0], by_value);
	printf("%s %ld %.1f %.1f\n", apart ? "apart" : "talk", rounds, (double)took[REPS / 2] / rounds, (double)took[0] / rounds);
	return 0;
}

enum { EACH = 20, SIZE = 100 }; // as hackbench's

// send_all and receive_all are the two sides of hackbench.
static void send_all(int pair[EACH][2], int messages)
{
	char b[SIZE] = {0};
	for (int m = 0; m < EACH * messages; m++)
		moved(write(pair[m % EACH][1], b, SIZE), SIZE);
}

static void receive_all(int fd, int messages)
{
	char b[SIZE];
	for (int m = 0; m < EACH * messages; m++)
		for (ssize_t n = 0, got; n < SIZE; n += got)
			if ((got = read(fd, b, SIZE - n)) <= 0)
				die("a message was lost");
}

// hack GROUPS MESSAGES: hackbench's pattern. In each group 20 processes send messages of
// 100 bytes to each of 20 others over Unix sockets. Prints milliseconds.
int hack_main(int argc, char **argv)
{
	int groups = argc > 1 ? atoi(argv[1]) : 10, messages = argc > 2 ? atoi(argv[2]) : 20;
	int go[2];
	char b;
	check(pipe(go), "pipe");
	for (int g = 0; g < groups; g++) {
		int pair[EACH][2];
		for (int i = 0; i < EACH; i++)
			check(socketpair(AF_UNIX, SOCK_STREAM, 0, pair[i]), "socketpair");
		for (int i = 0; i < 2 * EACH; i++) {
			pid_t pid = fork();
			check(pid, "fork");
			if (pid != 0)
				continue;
			close(go[1]);
			moved(read(go[0], &b, 1), 0); // until the parent closes its end
			if (i < EACH)
				send_all(pair, messages);
			else
				receive_all(pair[i - EACH][0], messages);
			_exit(0);
		}
		for (int i = 0; i < EACH; i++)
			close(pair[i][0]), close(pair[i][1]);
	}
	uint64_t t = now();
	close(go[1]);
	for (int status, i = 0; i < 2 * EACH * groups; i++) {
		check(wait(&status), "wait");
		if (status != 0)
			die("a process failed");
	}
	double ms = (double)(now() - t) / 1e6;
	printf("hack %d %.1f %.1f\n", groups, ms, ms);
	return 0;
}

static void futex_wait(_Atomic uint32_t *word, uint32_t old)
{
	if (syscall(SYS_futex, word, FUTEX_WAIT, old, NULL) < 0 && errno != EAGAIN && errno != EINTR)
		die("futex");
}

static void futex_wake(_Atomic uint32_t *word)
{
	check(syscall(SYS_futex, word, FUTEX_WAKE, 1), "futex");
}

enum { WORKERS = 16, WAKES = 1000 };

// What a messenger and its workers share.
static struct board {
	_Atomic uint32_t posts;         // counts what workers ask for
	_Atomic uint32_t ready[WORKERS]; // the worker waits for its next request
	_Atomic uint32_t given[WORKERS]; // counts requests
	uint64_t sent[WORKERS];          // when the last was given
	uint64_t late[WORKERS][WAKES];
} *board;

static _Noreturn void worker(int i)
{
	for (int n = 0; n < WAKES; n++) {
		board->ready[i] = 1;
		board->posts++;
		futex_wake(&board->posts);
		while (board->given[i] == (uint32_t)n)
			futex_wait(&board->given[i], n);
		board->late[i][n] = now() - board->sent[i];
		compute(10);
	}
	_exit(0);
}

// crowd: schbench's pattern. A messenger wakes 16 workers by a futex as they ask for
// requests; each computes for 0.1 ms. Prints how late they woke, in milliseconds: the median
// as the minimum, and 99.9 % as the median.
int crowd_main(void)
{
	board = mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (board == MAP_FAILED)
		die("mmap");
	for (int i = 0; i < WORKERS; i++) {
		pid_t pid = fork();
		check(pid, "fork");
		if (pid == 0)
			worker(i);
	}
	for (int left = WORKERS * WAKES; left > 0;) {
		uint32_t posts = board->posts;
		for (int i = 0; i < WORKERS; i++) {
			if (!atomic_exchange(&board->ready[i], 0))
				continue;
			board->sent[i] = now();
			board->given[i]++;
			futex_wake(&board->given[i]);
			left--;
		}
		if (left > 0 && board->posts == posts)
			futex_wait(&board->posts, posts);
	}
	for (int status, i = 0; i < WORKERS; i++) {
		check(wait(&status), "wait");
		if (status != 0)
			die("a process failed");
	}
	uint64_t *late = board->late[0];
	size_t n = WORKERS * WAKES;
	qsort(late, n, sizeof late[0], by_value);
	printf("crowd %zu %.4f %.4f\n", n, (double)late[n - n / 1000] / 1e6, (double)late[n / 2] / 1e6);
	return 0;
}

// urgent MS: a SCHED_FIFO process sleeps 1 ms again and again while 8 others spin. Prints
// how late it woke, median and worst, in milliseconds.
int urgent_main(int argc, char **argv)
{
	enum { SPINNERS = 8 };
	uint64_t limit = 1000000u * strtoull(argc > 1 ? argv[1] : "2000", NULL, 10);
	static uint64_t late[10000];
	struct sched_param p = {50};
	pid_t pid[SPINNERS];
	size_t n = 0;
	for (int i = 0; i < SPINNERS; i++)
		pid[i] = spinner();
	check(sched_setscheduler(0, SCHED_FIFO, &p), "sched_setscheduler");
	for (uint64_t began = now(); now() - began < limit && n < 10000;) {
		struct timespec ts = {0, 1000000};
		uint64_t t = now();
		nanosleep(&ts, NULL);
		uint64_t took = now() - t;
		late[n++] = took > 1000000 ? took - 1000000 : 0;
	}
	for (int i = 0; i < SPINNERS; i++)
		end(pid[i]);
	qsort(late, n, sizeof late[0], by_value);
	printf("urgent %zu %.3f %.3f\n", n, (double)late[n / 2] / 1e6, (double)late[n - 1] / 1e6);
	return 0;
}
