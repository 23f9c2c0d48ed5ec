// Threads share the processors by their weights.
#include "gt.h"
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

// spinners starts n processes of each nice value and lets them spin for a while. It
// returns how many rounds those of the first made for each of the second's.
static double spinners(int n, int first, int second, int policy)
{
	volatile unsigned long *rounds = mmap(0, 65536, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t pid[64];
	double sum[2] = {0, 0};
	int go[2];
	pipe(go);
	for (int i = 0; i < 2 * n; i++) {
		if ((pid[i] = fork()) == 0) {
			char c;
			struct sched_param none = {0};
			setpriority(PRIO_PROCESS, 0, i % 2 ? second : first);
			if (i % 2 && policy)
				sched_setscheduler(0, policy, &none);
			close(go[1]), read(go[0], &c, 1);
			for (;;)
				rounds[8 * i]++;
		}
	}
	usleep(200000);
	close(go[0]), close(go[1]);
	usleep(1500000);
	for (int i = 0; i < 2 * n; i++)
		kill(pid[i], SIGKILL);
	for (int i = 0; i < 2 * n; i++)
		waitpid(pid[i], 0, 0), sum[i % 2] += (double)rounds[8 * i];
	return sum[0] / (sum[1] + 1);
}

TEST(nices, "nice processes leave the processor to others")
{
	int n = 2 * sysconf(_SC_NPROCESSORS_ONLN);
	if (n > 32)
		n = 32;
	// By weight 9.3 and 29; the rest of the machine is busy, too.
	num("nice 0 gets far more than nice 10", spinners(n, 0, 10, 0) > 2);
	num("nice 0 gets far more than SCHED_IDLE", spinners(n, 0, 0, SCHED_IDLE) > 3);
}

TEST(yields, "who yields does not starve who computes")
{
	volatile unsigned long *rounds = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int n = 2 * sysconf(_SC_NPROCESSORS_ONLN);
	pid_t pid[65];
	if (n > 64)
		n = 64;
	for (int i = 0; i <= n; i++)
		if ((pid[i] = fork()) == 0)
			for (;;)
				i ? sched_yield() : rounds[0]++;
	usleep(300000);
	unsigned long before = rounds[0];
	usleep(700000);
	num("it goes on", rounds[0] > before);
	for (int i = 0; i <= n; i++)
		kill(pid[i], SIGKILL), waitpid(pid[i], 0, 0);
}

static int processors(void)
{
	int n = sysconf(_SC_NPROCESSORS_ONLN);
	return n > 32 ? 32 : n;
}

// counts is a row of counters, each in a cache line of its own, that children share.
static volatile unsigned long *counts;
static unsigned long sum_of(int from, int n)
{
	unsigned long sum = 0;
	for (int i = from; i < from + n; i++)
		sum += counts[8 * i];
	return sum;
}

TEST(newcomers, "who is new does not come before all who have run")
{
	int cpus = processors(), go[2], done[2];
	pid_t pid[3 * 32];
	char c = 0;
	counts = shared(65536);
	_Atomic int *ready = shared(4096);
	pipe(go), pipe(done);
	for (int i = 0; i < cpus; i++)
		if ((pid[i] = fork()) == 0) {
			struct timespec used;
			do
				clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
			while (used.tv_sec < 1);
			if (++*ready == cpus)
				write(done[1], &c, 1);
			read(go[0], &c, 1);
			for (;;)
				counts[8 * i]++;
		}
	read(done[0], &c, 1); // it has slept all the time, and its children begin as it is
	for (int i = cpus; i < 3 * cpus; i++)
		if ((pid[i] = fork()) == 0)
			for (;;)
				counts[8 * i]++;
	usleep(50000);
	for (int i = 0; i < cpus; i++)
		write(go[1], &c, 1);
	unsigned long before = sum_of(cpus, 2 * cpus);
	usleep(700000);
	unsigned long old = sum_of(0, cpus), new = sum_of(cpus, 2 * cpus) - before;
	for (int i = 0; i < 3 * cpus; i++)
		kill(pid[i], SIGKILL), waitpid(pid[i], 0, 0);
	num("a third of the processor, or nearly", old > new / 8);
}

// chain counts for a millisecond, has a child go on, and ends.
static void chain(int i)
{
	for (;;) {
		struct timespec used;
		do {
			counts[8 * i]++;
			clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
		} while (used.tv_nsec < 1000000);
		if (fork() != 0)
			_exit(0);
	}
}

TEST(chains, "who forks instead of waiting does not come before all others")
{
	int cpus = processors();
	pid_t pid[32];
	counts = shared(65536);
	signal(SIGCHLD, SIG_IGN);
	for (int i = 0; i < 3 * cpus; i++) {
		pid_t p = fork();
		if (p == 0 && i >= cpus)
			chain(i);
		if (p == 0)
			for (struct timespec used;; counts[8 * i]++)
				clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
		if (i < cpus)
			pid[i] = p;
	}
	usleep(200000);
	unsigned long before = sum_of(0, cpus), chained = sum_of(cpus, 2 * cpus);
	usleep(700000);
	unsigned long spun = sum_of(0, cpus) - before;
	chained = sum_of(cpus, 2 * cpus) - chained;
	num("a third of the processor, or nearly", spun > chained / 8);
	for (int i = 0; i < cpus; i++)
		kill(pid[i], SIGKILL);
	// The frame kills the rest with the process group.
}

static volatile int stop;
static void *spins(void *none)
{
	while (!stop)
		;
	return none;
}

TEST(threads, "threads that spin end when their process does")
{
	pid_t p = fork();
	if (p == 0) {
		pthread_t t;
		for (int i = 0; i < 20; i++)
			pthread_create(&t, 0, spins, 0);
		usleep(50000);
		_exit(7);
	}
	int st = 0;
	waitpid(p, &st, 0);
	num("status", WEXITSTATUS(st));
	p = fork();
	if (p == 0) {
		pthread_t t;
		for (int i = 0; i < 20; i++)
			pthread_create(&t, 0, spins, 0);
		usleep(50000);
		kill(getpid(), SIGSTOP);
		_exit(8);
	}
	waitpid(p, &st, WUNTRACED), num("stopped", WIFSTOPPED(st));
	kill(p, SIGCONT), waitpid(p, &st, 0), num("status", WEXITSTATUS(st));
}
