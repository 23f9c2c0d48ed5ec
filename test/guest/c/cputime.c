// CPU time: never more than passed on all processors, whatever threads wait for, and
// never less than before.
#include "gt.h"
#include <pthread.h>
#include <sys/times.h>

static double now(int clock)
{
	struct timespec ts;
	clock_gettime(clock, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

static double seconds(struct timeval tv) { return tv.tv_sec + tv.tv_usec / 1e6; }

static double used(int who)
{
	struct rusage r;
	getrusage(who, &r);
	return seconds(r.ru_utime) + seconds(r.ru_stime);
}

// slack is a tick of each processor, and one more.
static double most(double passed)
{
	long n = sysconf(_SC_NPROCESSORS_ONLN);
	return passed * n + 0.01 * (n + 1);
}

static volatile int stop;

static void *map(void *p)
{
	(void)p;
	while (!stop) {
		char *m = mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		m[0] = m[4096] = 1;
		madvise(m, 1 << 16, MADV_DONTNEED);
		mprotect(m, 4096, PROT_READ);
		munmap(m, 1 << 16);
	}
	return NULL;
}

static int file_fd;

static void *append(void *p)
{
	(void)p;
	static char b[65536];
	while (!stop)
		if (pwrite(file_fd, b, sizeof b, 0) < 0)
			break;
	return NULL;
}

static void *compute(void *p)
{
	(void)p;
	while (!stop)
		;
	return NULL;
}

static void *yield(void *p)
{
	(void)p;
	while (!stop)
		sched_yield();
	return NULL;
}

#define THREADS 12

static void together(const char *what, void *(*work)(void *))
{
	pthread_t id[THREADS];
	stop = 0;
	double began = now(CLOCK_MONOTONIC), before = used(RUSAGE_SELF), clock = now(CLOCK_PROCESS_CPUTIME_ID);
	for (int i = 0; i < THREADS; i++)
		pthread_create(&id[i], NULL, work, NULL);
	struct timespec half = {0, 400000000};
	nanosleep(&half, NULL);
	double middle = used(RUSAGE_SELF) - before, passed = now(CLOCK_MONOTONIC) - began;
	if (middle > most(passed))
		say("%s: %.3f s of CPU time in %.3f s while it runs", what, middle, passed);
	stop = 1;
	for (int i = 0; i < THREADS; i++)
		pthread_join(id[i], NULL);
	double rusage = used(RUSAGE_SELF) - before, cpu = now(CLOCK_PROCESS_CPUTIME_ID) - clock;
	passed = now(CLOCK_MONOTONIC) - began;
	if (rusage > most(passed) || cpu > most(passed))
		say("%s: %.3f s of CPU time, the clock says %.3f, in %.3f s", what, rusage, cpu, passed);
	say("%s: some CPU time %d", what, cpu > 0.001);
}

TEST(threads, "threads of one process")
{
	file_fd = open("shared", O_RDWR | O_CREAT, 0600);
	together("they map", map);
	together("they write to one file", append);
	together("they compute", compute);
	together("they yield", yield);
}

// children runs the work in processes; theirs is the time of children waited for.
TEST(processes, "processes, waited for")
{
	double began = now(CLOCK_MONOTONIC), before = used(RUSAGE_CHILDREN), each = 0;
	int fd = open("shared", O_RDWR | O_CREAT, 0600);
	for (int i = 0; i < THREADS; i++)
		if (fork() == 0) {
			static char b[65536];
			double end = now(CLOCK_MONOTONIC) + 0.3;
			while (now(CLOCK_MONOTONIC) < end)
				if (pwrite(fd, b, sizeof b, 0) < 0)
					_exit(1);
			_exit(0);
		}
	struct rusage r;
	while (wait4(-1, NULL, 0, &r) > 0)
		each += seconds(r.ru_utime) + seconds(r.ru_stime);
	double sum = used(RUSAGE_CHILDREN) - before, passed = now(CLOCK_MONOTONIC) - began;
	if (sum > most(passed) || each > most(passed))
		say("%.3f s of CPU time, one by one %.3f, in %.3f s", sum, each, passed);
	say("the sum is theirs %d", sum - each < 0.01 && each - sum < 0.01);
	struct tms t;
	times(&t);
	say("times knows %d", (t.tms_cutime + t.tms_cstime) / 100.0 > sum - 0.05);
}

TEST(waiting, "what waits takes none")
{
	int p[2];
	pipe(p);
	double before = now(CLOCK_PROCESS_CPUTIME_ID);
	struct pollfd f = {.fd = p[0], .events = POLLIN};
	poll(&f, 1, 300);
	struct timespec ts = {0, 200000000};
	nanosleep(&ts, NULL);
	say("blocked for half a second, less than 0.1 s %d", now(CLOCK_PROCESS_CPUTIME_ID) - before < 0.1);
}

TEST(spinner, "what computes takes it, in all its places")
{
	double before = used(RUSAGE_SELF);
	while (used(RUSAGE_SELF) - before < 0.2)
		for (volatile int i = 0; i < 100000; i++)
			;
	struct tms t;
	times(&t);
	double all = used(RUSAGE_SELF);
	say("times %d", t.tms_utime + t.tms_stime >= 17);
	say("the process's clock %d", now(CLOCK_PROCESS_CPUTIME_ID) >= 0.19 && now(CLOCK_PROCESS_CPUTIME_ID) < all + 10);
	say("the thread's clock %d", now(CLOCK_THREAD_CPUTIME_ID) >= 0.19);
	say("its share %d", used(RUSAGE_THREAD) >= 0.19);
	char b[1024] = "";
	int fd = open("/proc/self/stat", O_RDONLY);
	read(fd, b, sizeof b - 1);
	unsigned long user = 0, sys = 0;
	sscanf(strrchr(b, ')') + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &sys);
	say("/proc/self/stat %d", user + sys >= 17);
	fd = open("/proc/self/schedstat", O_RDONLY);
	memset(b, 0, sizeof b);
	read(fd, b, sizeof b - 1);
	unsigned long long ran = 0, waited = 0, times = 0;
	sscanf(b, "%llu %llu %llu", &ran, &waited, &times);
	say("/proc/self/schedstat %d %d", ran >= 190000000, times > 0);
}

TEST(monotonic, "neither share goes back")
{
	struct rusage last = {}, r;
	int back = 0, fd = open("file", O_RDWR | O_CREAT, 0600);
	static char b[1 << 18];
	for (int i = 0; i < 600; i++) {
		if (i % 3 == 0)
			pwrite(fd, b, sizeof b, 0);
		else
			for (volatile int k = 0; k < 20000; k++)
				;
		getrusage(RUSAGE_SELF, &r);
		back += timercmp(&r.ru_utime, &last.ru_utime, <) || timercmp(&r.ru_stime, &last.ru_stime, <);
		last = r;
	}
	say("went back %d times", back);
}

// jiffies returns the machine's times of /proc/stat, in seconds: all, and idle.
static double jiffies(double *idle)
{
	char b[4096] = "";
	int fd = open("/proc/stat", O_RDONLY);
	read(fd, b, sizeof b - 1);
	close(fd);
	unsigned long long v[8] = {};
	sscanf(b, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &v[0], &v[1], &v[2], &v[3], &v[4], &v[5], &v[6], &v[7]);
	*idle = (v[3] + v[4]) / 100.0;
	double all = 0;
	for (int i = 0; i < 8; i++)
		all += v[i] / 100.0;
	return all;
}

TEST(machine, "/proc/stat")
{
	double idle, idle2, began = now(CLOCK_MONOTONIC), all = jiffies(&idle);
	stop = 0;
	pthread_t id[3];
	for (int i = 0; i < 3; i++)
		pthread_create(&id[i], NULL, i == 0 ? compute : map, NULL);
	struct timespec ts = {0, 500000000};
	nanosleep(&ts, NULL);
	double passed = now(CLOCK_MONOTONIC) - began;
	all = jiffies(&idle2) - all;
	stop = 1;
	for (int i = 0; i < 3; i++)
		pthread_join(id[i], NULL);
	long n = sysconf(_SC_NPROCESSORS_ONLN);
	// Each of its numbers is cut to a hundredth.
	if (all > passed * n + 0.1 * (n + 1) || all < passed * n * 0.9 - 0.1 * (n + 1))
		say("%.2f s in all, %.3f s on %ld processors", all, passed, n);
	if (idle2 - idle > passed * n - 0.3)
		say("%.2f s idle of %.3f s on %ld processors", idle2 - idle, passed, n);
}

