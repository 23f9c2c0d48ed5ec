// storm makes the kernel wake and put to sleep its processors as often as it can:
// pairs of threads and of processes hand a turn back and forth by futex and pipe, crowds
// wait for one word, sleepers sleep for moments, timers send signals, mappings come
// and go so that every processor has translations to forget. Nobody's turn may get
// lost: a wait that lasts a minute is one, and ends the program with status 1.
//
//	storm SECONDS [CONTROL]
//
// With CONTROL, on Hardtack, /proc/hardtack/control must say that.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { pairs = 4, crowd = 6, sleepers = 4, mappers = 2, patience = 60 };

static time_t end; // of the storm, by the monotonic clock

static time_t seconds(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec;
}

// What has happened so far.
static struct {
	_Atomic long trips, rounds, naps, maps, alarms, bytes;
} count[1];

// Two hand the turn back and forth; the second stops when it is told to.
static struct pair {
	_Atomic int turn;
	_Atomic long trips;
} pair[pairs], *shared; // of threads, and one of processes

// nobody_idle tells whether everybody has done something.
static int nobody_idle(void)
{
	for (int i = 0; i < pairs; i++)
		if (!pair[i].trips)
			return 0;
	return shared->trips && count->rounds && count->naps && count->maps && count->alarms && count->bytes;
}

// blowing tells whether the storm goes on: for its time, and on a machine that gave
// somebody no turn in it for longer.
static int blowing(void)
{
	time_t t = seconds();
	return t < end || (t < end + patience && !nobody_idle());
}

static void lost(const char *what)
{
	printf("LOST: %s waited for %d s\n", what, patience);
	fflush(stdout);
	_exit(1);
}

static void await(_Atomic int *word, int value, const char *who)
{
	for (time_t since = seconds();;) {
		struct timespec limit = {patience, 0};
		if (atomic_load(word) != value)
			return;
		if (syscall(SYS_futex, word, FUTEX_WAIT, value, &limit, NULL, 0) != 0 && errno == ETIMEDOUT &&
		    atomic_load(word) == value && seconds() - since >= patience)
			lost(who);
	}
}

static void wake(_Atomic int *word, int n) { syscall(SYS_futex, word, FUTEX_WAKE, n, NULL, NULL, 0); }

static void first(struct pair *p)
{
	for (; blowing(); p->trips++) {
		count->trips++;
		p->turn = 1;
		wake(&p->turn, 1);
		await(&p->turn, 1, "the first of a pair");
	}
	p->turn = 2;
	wake(&p->turn, 1);
}

static void second(struct pair *p)
{
	for (;;) {
		await(&p->turn, 0, "the second of a pair");
		if (p->turn == 2)
			return;
		p->turn = 0;
		wake(&p->turn, 1);
	}
}

static void *first_thread(void *p) { first(p); return NULL; }
static void *second_thread(void *p) { second(p); return NULL; }

// All of a crowd wait for the next round.
static _Atomic int round_no, arrived, over;

static void *member(void *p)
{
	(void)p;
	for (int r = 0;; r++) {
		await(&round_no, r, "a member of the crowd");
		if (over)
			return NULL;
		if (atomic_fetch_add(&arrived, 1) + 1 == crowd)
			wake(&arrived, 1);
	}
}

static void *caller(void *p)
{
	(void)p;
	for (int go = 1; go; count->rounds++) {
		arrived = 0;
		if (!blowing()) {
			over = 1;
			go = 0;
		}
		round_no++;
		wake(&round_no, crowd);
		for (int n; go && (n = arrived) != crowd;)
			await(&arrived, n, "who called the crowd");
	}
	return NULL;
}

static void *sleeper(void *p)
{
	for (unsigned seed = (unsigned)(size_t)p; blowing(); count->naps++) {
		struct timespec t = {0, rand_r(&seed) % 300000};
		time_t before = seconds();
		nanosleep(&t, NULL);
		if (seconds() - before >= patience)
			lost("a sleeper");
		if (count->naps % 8 == 0)
			sched_yield();
	}
	return NULL;
}

static void *mapper(void *p)
{
	(void)p;
	for (; blowing(); count->maps++) {
		char *m = mmap(NULL, 1 << 18, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (m == MAP_FAILED)
			continue;
		memset(m, 1, 1 << 18);
		mprotect(m, 4096, PROT_READ);
		munmap(m, 1 << 18);
	}
	return NULL;
}

static void on_alarm(int sig) { (void)sig; count->alarms++; }

// Processes hand a byte back and forth through pipes, while others come and go.
static void byte_trips(void)
{
	int there[2], back[2];
	if (pipe(there) || pipe(back))
		exit(2);
	pid_t child = fork();
	if (child == 0) {
		char b;
		close(there[1]);
		while (read(there[0], &b, 1) == 1)
			if (write(back[1], &b, 1) != 1)
				_exit(1);
		_exit(0);
	}
	long n = 0;
	for (; blowing(); n++) {
		count->bytes++;
		char b = 'x';
		struct pollfd fd = {back[0], POLLIN, 0};
		while (write(there[1], &b, 1) < 0 && errno == EINTR)
			;
		int r;
		do
			r = poll(&fd, 1, patience * 1000);
		while (r < 0 && errno == EINTR);
		if (r == 0)
			lost("a reader of a pipe");
		while (read(back[0], &b, 1) < 0 && errno == EINTR)
			;
		if (n % 64 == 0) {
			pid_t other = fork();
			if (other == 0)
				_exit(0);
			while (waitpid(other, NULL, 0) < 0 && errno == EINTR)
				;
		}
	}
	close(there[1]);
	while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
		;
}

int main(int argc, char **argv)
{
	if (argc > 2) {
		char is[64] = "";
		FILE *f = fopen("/proc/hardtack/control", "r");
		if (!f || !fgets(is, sizeof is, f) || strncmp(is, argv[2], strlen(argv[2])) || is[strlen(argv[2])] != '\n') {
			printf("the kernel's concurrency control is %s, not %s\n", is, argv[2]);
			return 1;
		}
	}
	printf("%ld CPUs\n", sysconf(_SC_NPROCESSORS_ONLN));
	end = seconds() + (argc > 1 ? atoi(argv[1]) : 5);
	struct sigaction sa = {.sa_handler = on_alarm};
	sigaction(SIGALRM, &sa, NULL);

	// A pair of processes, too: the word is shared.
	shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t partner = fork();
	if (partner == 0) {
		second(shared);
		_exit(0);
	}
	struct itimerval every = {{0, 1000}, {0, 1000}};
	setitimer(ITIMER_REAL, &every, NULL);

	pthread_t t[64];
	int n = 0;
	for (int i = 0; i < pairs; i++) {
		pthread_create(&t[n++], NULL, first_thread, &pair[i]);
		pthread_create(&t[n++], NULL, second_thread, &pair[i]);
	}
	for (int i = 0; i < crowd; i++)
		pthread_create(&t[n++], NULL, member, NULL);
	pthread_create(&t[n++], NULL, caller, NULL);
	for (size_t i = 0; i < sleepers; i++)
		pthread_create(&t[n++], NULL, sleeper, (void *)(i + 1));
	for (int i = 0; i < mappers; i++)
		pthread_create(&t[n++], NULL, mapper, NULL);
	pthread_create(&t[n++], NULL, first_thread, shared);
	byte_trips();
	for (int i = 0; i < n; i++)
		pthread_join(t[i], NULL);
	every = (struct itimerval){0};
	setitimer(ITIMER_REAL, &every, NULL);
	while (waitpid(partner, NULL, 0) < 0 && errno == EINTR)
		;
	if (!nobody_idle())
		lost("somebody who did nothing");
	printf("%ld turns, %ld of them of processes, %ld of pipes, %ld rounds, %ld naps, %ld mappings, %ld signals\n",
	       (long)count->trips, (long)shared->trips, (long)count->bytes, (long)count->rounds, (long)count->naps,
	       (long)count->maps, (long)count->alarms);
	puts("the storm is over");
	return 0;
}
