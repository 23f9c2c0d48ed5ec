// Program system tests time, limits, credentials and what a process can ask of
// the kernel.
#include "gt.h"

#include <grp.h>
#include <sys/random.h>
#include <sys/sysinfo.h>
#include <sys/times.h>
#include <sys/utsname.h>
#include <sys/auxv.h>

static long long ns(struct timespec t) { return t.tv_sec * 1000000000LL + t.tv_nsec; }

static long long clock_ns(clockid_t c)
{
	struct timespec ts;
	must(clock_gettime(c, &ts), "clock_gettime");
	return ns(ts);
}

TEST(clocks, "clocks")
{
	static const clockid_t all[] = {CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_PROCESS_CPUTIME_ID, CLOCK_THREAD_CPUTIME_ID,
					CLOCK_MONOTONIC_RAW, CLOCK_REALTIME_COARSE, CLOCK_MONOTONIC_COARSE, CLOCK_BOOTTIME};
	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
		struct timespec a, r;
		long rc = syscall(SYS_clock_gettime, all[i], &a);
		say("clock %d: %s, in range %d", all[i], rc ? name_of(errno) : "ok", a.tv_nsec >= 0 && a.tv_nsec < 1000000000);
		err("resolution", clock_getres(all[i], &r));
	}
	int back = 0;
	long long last = 0;
	for (int i = 0; i < 20000; i++) {
		long long t = clock_ns(CLOCK_MONOTONIC);
		back += t < last;
		last = t;
	}
	say("monotonic went back %d times", back);
	struct timespec v, s;
	clock_gettime(CLOCK_MONOTONIC, &v);
	syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &s);
	say("library and system call agree: %d", ns(s) >= ns(v) && ns(s) - ns(v) < 1000000000);
	struct timeval tv;
	gettimeofday(&tv, NULL);
	long long real = clock_ns(CLOCK_REALTIME) / 1000000000;
	say("gettimeofday %d, time %d", real - tv.tv_sec <= 1, real - time(NULL) <= 1);
	say("it is later than 2024: %d", real > 1704067200);
	err("unknown clock", syscall(SYS_clock_gettime, 99, &v));
	err("wild", syscall(SYS_clock_gettime, CLOCK_MONOTONIC, 8));
	long long cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	sleep_ms(30);
	say("sleep costs no CPU: %d", clock_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu < 20000000);
	long long end = now_ms() + 10000;
	while (clock_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu <= 5000000 && now_ms() < end)
		;
	say("computing does: %d", clock_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu > 5000000);
	struct tms t;
	say("times %d", times(&t) != -1);
	unsigned c, node;
	say("getcpu %ld, in range %d", syscall(SYS_getcpu, &c, &node, NULL), c < CPU_SETSIZE);
}

TEST(sleeping, "sleep")
{
	struct timespec ts = {0, 20000000}, left = {7, 7};
	long long t = clock_ns(CLOCK_MONOTONIC);
	err("nanosleep", nanosleep(&ts, &left));
	long long took = clock_ns(CLOCK_MONOTONIC) - t;
	say("not too short %d, not a second %d", took >= 20000000, took < 1000000000);
	say("the rest is not touched: %ld", (long)left.tv_sec);
	ts.tv_nsec = 1000000000;
	err("bad", nanosleep(&ts, NULL));
	ts = (struct timespec){-1, 0};
	err("negative", nanosleep(&ts, NULL));
	err("wild", syscall(SYS_nanosleep, 8, NULL));
	ts = (struct timespec){0, 0};
	err("zero", nanosleep(&ts, NULL));
	static const clockid_t both[] = {CLOCK_MONOTONIC, CLOCK_REALTIME};
	for (int i = 0; i < 2; i++) {
		long long to = clock_ns(both[i]) + 20000000;
		ts = (struct timespec){to / 1000000000, to % 1000000000};
		say("absolute: %s", name_of(clock_nanosleep(both[i], TIMER_ABSTIME, &ts, NULL)));
		say("reached %d", clock_ns(both[i]) >= to);
	}
	ts = (struct timespec){1, 0};
	say("past: %s", name_of(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL)));
	say("a thread's clock: %s", name_of(clock_nanosleep(CLOCK_THREAD_CPUTIME_ID, 0, &ts, NULL)));
	say("unknown clock: %s", name_of(clock_nanosleep(99, 0, &ts, NULL)));
	// Ten sleepers at once take no longer than one.
	t = now_ms();
	for (int i = 0; i < 10; i++)
		FORK(sleep_ms(200));
	while (wait(NULL) > 0)
		;
	took = now_ms() - t;
	say("together: %d", took >= 200 && took < 1900);
}

TEST(identity, "uname and sysinfo")
{
	struct utsname u;
	err("uname", uname(&u));
	say("%s %s, node %d release %d version %d", u.sysname, u.machine, u.nodename[0] != 0, u.release[0] != 0, u.version[0] != 0);
	err("wild", syscall(SYS_uname, 8));
	struct sysinfo s;
	err("sysinfo", sysinfo(&s));
	say("memory %d, free %d, processes %d, uptime %d", s.totalram * s.mem_unit > 64 << 20, s.freeram <= s.totalram, s.procs > 0, s.uptime >= 0);
	say("processors %d %d", sysconf(_SC_NPROCESSORS_ONLN) > 0, sysconf(_SC_PHYS_PAGES) > 1000);
	cpu_set_t set;
	err("affinity", sched_getaffinity(0, sizeof set, &set));
	say("some %d", CPU_COUNT(&set) > 0);
	say("first only: %s", sched_setaffinity(0, 0, &set) ? name_of(errno) : "ok");
	CPU_ZERO(&set);
	err("none", sched_setaffinity(0, sizeof set, &set));
	CPU_SET(0, &set);
	err("the first", sched_setaffinity(0, sizeof set, &set));
	sched_getaffinity(0, sizeof set, &set);
	say("now %d", CPU_COUNT(&set));
	err("of a process that is not", sched_getaffinity(999999, sizeof set, &set));
	err("too small", syscall(SYS_sched_getaffinity, 0, 1, &set));
}

TEST(random_bytes, "getrandom")
{
	unsigned char a[64] = {0}, b[64] = {0};
	num("getrandom", getrandom(a, sizeof a, 0));
	num("non-blocking", getrandom(b, sizeof b, GRND_NONBLOCK));
	say("they differ: %d", memcmp(a, b, sizeof a) != 0);
	num("nothing", getrandom(a, 0, 0));
	num("bad flags", getrandom(a, 1, 64));
	num("insecure and random", getrandom(a, 1, GRND_RANDOM | 4));
	num("wild", syscall(SYS_getrandom, 8, 16, 0));
	char *p = malloc(1 << 20);
	num("a megabyte", getrandom(p, 1 << 20, 0));
	int count[256] = {0}, low = INT_MAX;
	for (int i = 0; i < 1 << 20; i++)
		count[(unsigned char)p[i]]++;
	for (int i = 0; i < 256; i++)
		low = low < count[i] ? low : count[i];
	say("every byte comes often: %d", low > 3500);
}

// soft_limit tells what became of the soft limit on processor time.
static void soft_limit(int sig)
{
	struct rlimit rl;
	getrlimit(RLIMIT_CPU, &rl);
	say("signal %d, soft limit %ld", sig, (long)rl.rlim_cur);
	_exit(0);
}

TEST(rlimits, "resource limits")
{
	for (int r = 0; r < 16; r++) {
		struct rlimit rl = {1, 0};
		say("limit %d: %s, ordered %d", r, getrlimit(r, &rl) ? name_of(errno) : "ok", rl.rlim_cur <= rl.rlim_max);
	}
	struct rlimit rl = {10, 5};
	err("soft above hard", setrlimit(RLIMIT_NOFILE, &rl));
	err("unknown", getrlimit(99, &rl));
	rl = (struct rlimit){1000, 2000};
	err("set", setrlimit(RLIMIT_CORE, &rl));
	struct rlimit old;
	err("prlimit", (long)syscall(SYS_prlimit64, 0, RLIMIT_CORE, NULL, &old));
	say("%ld %ld", (long)old.rlim_cur, (long)old.rlim_max);
	err("wild", syscall(SYS_prlimit64, 0, RLIMIT_CORE, 8, NULL));
	err("no process", syscall(SYS_prlimit64, 999999, RLIMIT_CORE, NULL, &old));
	IN_CHILD("a child inherits", {
		getrlimit(RLIMIT_CORE, &rl);
		say("%ld", (long)rl.rlim_cur);
	});
	IN_CHILD("file size", {
		// The limit holds for the file of our output too, so nothing is
		// printed under it.
		rl = (struct rlimit){1000, RLIM_INFINITY};
		setrlimit(RLIMIT_FSIZE, &rl);
		signal(SIGXFSZ, SIG_IGN);
		int fd = open("f", O_CREAT | O_RDWR, 0644);
		char buf[700] = "";
		long a = write(fd, buf, 700), b = write(fd, buf, 700), c = write(fd, buf, 700), e = errno, d = ftruncate(fd, 2000);
		rl.rlim_cur = RLIM_INFINITY;
		setrlimit(RLIMIT_FSIZE, &rl);
		say("write %ld, to the limit %ld, beyond %ld %s, truncate %ld %s", a, b, c, name_of(e), d, name_of(errno));
		rl.rlim_cur = 1000;
		setrlimit(RLIMIT_FSIZE, &rl);
		signal(SIGXFSZ, SIG_DFL);
		if (write(fd, buf, 700) < 0)
			_exit(1);
	});
	IN_CHILD("processor time", {
		// A virtual CPU that did not run for a while may find the time far beyond the
		// limit, hence the distance between the two.
		rl = (struct rlimit){1, 60};
		setrlimit(RLIMIT_CPU, &rl);
		for (;;)
			;
	});
	IN_CHILD("processor time at once", {
		rl = (struct rlimit){0, 60};
		signal(SIGXCPU, soft_limit);
		setrlimit(RLIMIT_CPU, &rl);
		for (;;)
			;
	});
	IN_CHILD("processor time to the end", {
		rl = (struct rlimit){1, 2};
		signal(SIGXCPU, SIG_IGN);
		setrlimit(RLIMIT_CPU, &rl);
		for (;;)
			;
	});
}

TEST(usage, "resource usage")
{
	struct rusage ru;
	err("self", getrusage(RUSAGE_SELF, &ru));
	err("children", getrusage(RUSAGE_CHILDREN, &ru));
	err("thread", getrusage(RUSAGE_THREAD, &ru));
	err("bad", getrusage((enum __rusage_who)9, &ru));
	IN_CHILD("child", {
		long long end = now_ms() + 10000; // a busy machine may keep us from running
		while (clock() < 50 * CLOCKS_PER_SEC / 1000 && now_ms() < end)
			;
	});
	getrusage(RUSAGE_CHILDREN, &ru);
	say("its time was counted: %d", ru.ru_utime.tv_usec + ru.ru_stime.tv_usec > 10000 || ru.ru_utime.tv_sec > 0);
	errno = 0;
	int nice = getpriority(PRIO_PROCESS, 0); // 0, unless the test was started with another
	say("nice value: %s", name_of(errno));
	err("4 up", setpriority(PRIO_PROCESS, 0, nice + 4));
	say("up by %d", getpriority(PRIO_PROCESS, 0) - nice);
	err("raw", syscall(SYS_getpriority, PRIO_PROCESS, 0) == 20 - nice - 4 ? 0 : -1);
}

static void ids(const char *what)
{
	uid_t r, e, s;
	gid_t a, b, c;
	getresuid(&r, &e, &s), getresgid(&a, &b, &c);
	say("%s: %d %d %d, %d %d %d", what, r, e, s, a, b, c);
}

TEST(credentials, "users and groups")
{
	if (getuid() != 0) {
		say("needs root");
		return;
	}
	ids("root");
	err("setgroups", setgroups(3, (gid_t[]){10, 20, 30}));
	gid_t g[10];
	num("getgroups", getgroups(10, g));
	say("%d %d %d", g[0], g[1], g[2]);
	num("how many", getgroups(0, NULL));
	num("too small", getgroups(2, g));
	num("negative", syscall(SYS_getgroups, -1, g));
	IN_CHILD("setresuid", {
		err("set", setresuid(1, 2, 3));
		ids("now");
		err("swap", setresuid(2, 3, 1));
		ids("now");
		err("foreign", setresuid(9, -1, -1));
		err("seteuid", seteuid(2));
		ids("now");
		err("setgid without right", setgid(5));
		err("setgroups without right", setgroups(0, NULL));
	});
	IN_CHILD("setreuid", {
		err("set", setreuid(1000, 2000));
		ids("saved follows");
		err("back", setreuid(2000, 1000));
		ids("now");
	});
	IN_CHILD("setgid", {
		err("setegid", setegid(7));
		ids("now");
		err("setgid", setgid(8));
		ids("now");
		err("setuid", setuid(1000));
		err("setgid", setgid(0));
		err("setregid", setregid(8, 8));
		ids("now");
	});
	IN_CHILD("a set-user-id program", {
		char self[PATH_MAX];
		ssize_t n = must(readlink("/proc/self/exe", self, sizeof self), "readlink");
		int in = open("/proc/self/exe", O_RDONLY);
		int out = (int)must(open("/tmp/gt-suid", O_CREAT | O_WRONLY | O_TRUNC, 0755), "create");
		char buf[65536];
		while ((n = read(in, buf, sizeof buf)) > 0)
			must(write(out, buf, (size_t)n), "write");
		must(fchown(out, 3000, 4000), "fchown");
		must(fchmod(out, 06755), "fchmod");
		close(out);
		pid_t pid = FORK({
			must(setresgid(1000, 1000, 1000), "setresgid"), must(setresuid(1000, 1000, 1000), "setresuid");
			execl("/tmp/gt-suid", "x", "child", NULL);
			fatal("exec");
		});
		wait_for(pid);
		unlink("/tmp/gt-suid");
	});
	IN_CHILD("file system id", {
		num("setfsuid gives the old", syscall(SYS_setfsuid, 55));
		num("again", syscall(SYS_setfsuid, -1));
	});
	IN_CHILD("capabilities", {
		struct { uint32_t version; int pid; } h = {0x20080522, 0};
		struct { uint32_t effective, permitted, inheritable; } d[2];
		err("capget", syscall(SYS_capget, &h, d));
		say("root has some: %d", d[0].effective != 0);
		must(setuid(1000), "setuid");
		err("capget", syscall(SYS_capget, &h, d));
		say("another has none: %d", d[0].effective == 0);
	});
}

int child_main(int argc, char **argv)
{
	(void)argc, (void)argv;
	ids("it runs as");
	say("secure %lu", getauxval(AT_SECURE));
	return 0;
}

TEST(control, "prctl")
{
	char name[16] = "";
	err("set name", prctl(PR_SET_NAME, "a very long thread name"));
	err("get name", prctl(PR_GET_NAME, name));
	say("%s", name);
	num("dumpable", prctl(PR_GET_DUMPABLE));
	err("set", prctl(PR_SET_DUMPABLE, 0));
	num("dumpable", prctl(PR_GET_DUMPABLE));
	num("no new privileges", prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0));
	err("set", prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	num("no new privileges", prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0));
	int sig = 9;
	err("death signal", prctl(PR_GET_PDEATHSIG, &sig));
	say("%d", sig);
	err("bad death signal", prctl(PR_SET_PDEATHSIG, 99));
	err("unknown", prctl(987654, 0, 0, 0, 0));
	err("wild name", prctl(PR_SET_NAME, 8));
	num("keep capabilities", prctl(PR_GET_KEEPCAPS));
	num("subreaper", prctl(PR_SET_CHILD_SUBREAPER, 1));
	int sub = 0;
	prctl(PR_GET_CHILD_SUBREAPER, &sub);
	say("%d", sub);
}

TEST(scheduling, "scheduling")
{
	struct sched_param p = {0};
	num("policy", sched_getscheduler(0));
	err("param", sched_getparam(0, &p));
	say("%d", p.sched_priority);
	num("max", sched_get_priority_max(SCHED_FIFO));
	num("min", sched_get_priority_min(SCHED_FIFO));
	num("other", sched_get_priority_max(SCHED_OTHER));
	num("unknown", sched_get_priority_max(99));
	err("yield", sched_yield());
	err("no process", sched_getscheduler(999999));
	p.sched_priority = 5;
	err("a priority for SCHED_OTHER", sched_setscheduler(0, SCHED_OTHER, &p));
}

TEST(numbers, "calls that do not exist")
{
	static const long none[] = {600, 1000, 5000, 0x3fffffff, 0x7fffffff, -1, -4096, 400};
	for (size_t i = 0; i < sizeof none / sizeof none[0]; i++)
		err("call", syscall(none[i], 1, 2, 3, 4, 5, 6));
}

TEST(fairness, "two that compute share the processor")
{
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(0, &set);
	sched_setaffinity(0, sizeof set, &set);
	volatile long *n = shared(4096);
	pid_t a = FORK(for (;;) n[0]++), b = FORK(for (;;) n[512 / 8]++);
	sleep_ms(600);
	kill(a, SIGKILL), kill(b, SIGKILL);
	wait_for(a), wait_for(b);
	double r = (double)n[0] / (double)(n[512 / 8] + 1);
	say("both ran: %d, neither starved: %d", n[0] > 0 && n[512 / 8] > 0, r > 0.1 && r < 10);
}
