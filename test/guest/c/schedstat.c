// /proc/PID/schedstat: for how long threads ran and waited for a processor, and how often.
#include "gt.h"
#include <linux/futex.h>
#include <pthread.h>

struct stat_of {
	unsigned long long ran, waited, times;
};

static struct stat_of get(const char *path)
{
	struct stat_of s = {0};
	char b[200] = "", again[200];
	int fd = open(path, O_RDONLY), n = read(fd, b, sizeof b - 1), end = 0;
	if (fd < 0 || n <= 0 || sscanf(b, "%llu %llu %llu\n%n", &s.ran, &s.waited, &s.times, &end) != 3 || end != n)
		say("%s: %d %s", path, n, b);
	snprintf(again, sizeof again, "%llu %llu %llu\n", s.ran, s.waited, s.times);
	if (strcmp(b, again))
		say("it reads %s", b);
	close(fd);
	return s;
}

static struct stat_of of_thread(pid_t pid, pid_t tid)
{
	char path[100];
	snprintf(path, sizeof path, "/proc/%d/task/%d/schedstat", pid, tid);
	return get(path);
}

static struct stat_of of(pid_t pid)
{
	char path[100];
	snprintf(path, sizeof path, "/proc/%d/schedstat", pid);
	return get(path);
}

static long long cpu_time(clockid_t clock)
{
	struct timespec t;
	clock_gettime(clock, &t);
	return t.tv_sec * 1000000000ll + t.tv_nsec;
}

// burn takes so many milliseconds of processor time.
static void burn(int ms)
{
	for (long long end = cpu_time(CLOCK_THREAD_CPUTIME_ID) + ms * 1000000ll; cpu_time(CLOCK_THREAD_CPUTIME_ID) < end;)
		;
}

static void pin(void)
{
	uint64_t mask = 1;
	syscall(SYS_sched_setaffinity, 0, 8, &mask);
}

static pid_t the_thread;
static int go[2];
static void *burns(void *none)
{
	char c;
	the_thread = gettid();
	burn(30);
	read(go[0], &c, 1);
	return none;
}

TEST(threads, "a process's file is that of its first thread")
{
	pthread_t id;
	pipe(go);
	burn(20);
	pthread_create(&id, 0, burns, 0);
	pid_t me = getpid();
	say("the other has run %d", until(the_thread && of_thread(me, the_thread).ran >= 28000000));
	struct stat_of a = of(me), b = of_thread(me, me), c = of_thread(me, the_thread);
	say("the same %d", b.ran >= a.ran && b.waited >= a.waited && b.times >= a.times && b.times < a.times + 1000);
	long long mine = cpu_time(CLOCK_THREAD_CPUTIME_ID);
	say("its time %d", (long long)a.ran <= mine && (long long)of(me).ran >= mine);
	say("the other's is its own %d", c.ran >= 28000000 && c.times > 0);
	write(go[1], "x", 1);
	pthread_join(id, 0);
	char path[100];
	snprintf(path, sizeof path, "/proc/self/task/%d/schedstat", the_thread);
	say("a thread that has ended %d", until(open(path, O_RDONLY) < 0 && errno == ENOENT));
	err("written to", open("/proc/self/schedstat", O_WRONLY));
}

TEST(ended, "of one that has ended, and is not waited for")
{
	pid_t pid = FORK(burn(30));
	siginfo_t si;
	waitid(P_PID, pid, &si, WEXITED | WNOWAIT);
	struct stat_of s = of(pid), t = of_thread(pid, pid);
	say("ran %d, times %d, the same %d", s.ran >= 29000000, s.times > 0, !memcmp(&s, &t, sizeof s));
	wait_for(pid);
}

// ran_on reads for how long threads have run on a processor.
static long long ran_on(int cpu)
{
	char line[512], name[16];
	long long n, ran = -1;
	snprintf(name, sizeof name, "cpu%d ", cpu);
	FILE *f = fopen("/proc/schedstat", "r");
	while (f && fgets(line, sizeof line, f))
		if (!strncmp(line, name, strlen(name)) &&
		    sscanf(line + strlen(name), "%lld %lld %lld %lld %lld %lld %lld", &n, &n, &n, &n, &n, &n, &n) == 7)
			ran = n;
	if (f)
		fclose(f);
	return ran;
}

// A program that is bound computes on its processor, and the processor says so. Where others keep
// both busy their shares differ less than that; so it has several tries.
TEST(each_cpu, "a processor's time is its own")
{
	int cpus = sysconf(_SC_NPROCESSORS_ONLN), at = cpus - 1, own = 0;
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(at, &set);
	sched_setaffinity(0, sizeof set, &set);
	for (int try = 0; try < 20 && !own; try++) {
		long long was = ran_on(at), first = ran_on(0);
		burn(200);
		long long more = ran_on(at) - was, others = ran_on(0) - first;
		own = was >= 0 && more >= 150000000 && (cpus == 1 || others < more / 2);
	}
	say("it ran there %d", own);
}

TEST(shared_cpu, "who computes beside others waits for the rest of the time")
{
	long long *took = shared(4096);
	struct stat_of *s = shared(4096);
	pin();
	pid_t pid[4];
	for (int i = 0; i < 4; i++)
		pid[i] = FORK({
			long long began = cpu_time(CLOCK_MONOTONIC);
			struct stat_of was = of(getpid());
			burn(100);
			s[i] = of(getpid());
			took[i] = cpu_time(CLOCK_MONOTONIC) - began;
			s[i].ran -= was.ran, s[i].waited -= was.waited, s[i].times -= was.times;
		});
	for (int i = 0; i < 4; i++)
		wait_for(pid[i]);
	int ran = 0, waited = 0, all = 0, times = 0;
	long long sum = 0;
	for (int i = 0; i < 4; i++) {
		ran += s[i].ran >= 99000000;
		sum += s[i].waited;
		all += (long long)(s[i].ran + s[i].waited) <= took[i] + 1000000;
		times += s[i].times > 2;
	}
	waited = sum > 400000000; // each waits for three others, but for the last ones
	say("ran %d, waited %d, no more than there was %d, several times %d", ran, waited, all, times);
}

static _Atomic int *word, *asleep_now;
static int sleepers(int n, int ms, struct stat_of *s)
{
	pid_t pid[64];
	*word = *asleep_now = 0;
	for (int i = 0; i < n; i++)
		pid[i] = FORK({
			struct stat_of was = of(getpid());
			++*asleep_now;
			while (!*word)
				syscall(SYS_futex, word, FUTEX_WAIT, 0, 0, 0, 0);
			burn(ms);
			s[i] = of(getpid());
			s[i].waited -= was.waited, s[i].times -= was.times;
		});
	until(*asleep_now == n);
	for (int i = 0; i < n; i++)
		settle(pid[i]);
	*word = 1;
	syscall(SYS_futex, word, FUTEX_WAKE, n, 0, 0, 0);
	int bad = 0;
	for (int i = 0; i < n; i++)
		bad += wait_for(pid[i]) != 0;
	return bad;
}

TEST(woken, "who is woken with others waits")
{
	struct stat_of *s = shared(4096);
	word = shared(4096), asleep_now = word + 1;
	pin();
	say("bad %d", sleepers(20, 5, s));
	unsigned long long sum = 0;
	int times = 0;
	for (int i = 0; i < 20; i++)
		sum += s[i].waited, times += s[i].times > 0;
	// The one in place i waits for i others of 5 ms, at least.
	say("times %d, waited %d", times, sum >= 19 * 20 / 2 * 5000000ll * 9 / 10);
}

TEST(blocked, "who sleeps neither runs nor waits")
{
	struct stat_of a, b;
	int few = 0;
	for (int i = 0; i < 50 && !few; i++) { // on a busy machine it may wait when it is woken
		a = of(getpid());
		sleep_ms(100);
		b = of(getpid());
		few = b.ran - a.ran < 20000000 && b.waited - a.waited < 20000000;
	}
	say("few %d, times %d", few, b.times > a.times);
}

TEST(counted, "each sleep ends in a turn")
{
	int p[2], q[2];
	char c = 0;
	pipe(p), pipe(q);
	pin();
	pid_t pid = FORK({
		while (read(p[0], &c, 1) == 1 && c != 1)
			write(q[1], &c, 1);
	});
	settle(pid);
	struct stat_of a = of(pid);
	for (int i = 0; i < 100; i++)
		write(p[1], &c, 1), read(q[0], &c, 1);
	settle(pid);
	struct stat_of b = of(pid);
	say("a hundred %d", b.times - a.times >= 100 && b.times - a.times < 1000);
	c = 1;
	write(p[1], &c, 1);
	wait_for(pid);
}
