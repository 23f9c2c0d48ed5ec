// Scheduling classes: who may have which, who inherits them, and who comes first.
#include "gt.h"

static int set(int policy, int priority)
{
	struct sched_param p = {priority};
	return sched_setscheduler(0, policy, &p);
}

static void show(const char *what)
{
	struct sched_param p = {-1};
	sched_getparam(0, &p);
	say("%s: policy %#x, priority %d, nice %d", what, sched_getscheduler(0), p.sched_priority, getpriority(PRIO_PROCESS, 0));
}

// child runs a function in a child, and waits for that.
static void child(void (*run)(void))
{
	pid_t pid = fork();
	if (pid == 0)
		run(), _exit(0);
	waitpid(pid, 0, 0);
}

static void show_child(void)
{
	show("child");
}

// stat_fields shows what /proc/PID/stat says of the caller's class.
static void stat_fields(void)
{
	char b[2048];
	int fd = open("/proc/self/stat", O_RDONLY), n = (int)read(fd, b, sizeof b - 1), field = 2;
	close(fd);
	b[n > 0 ? n : 0] = 0;
	for (char *s = strtok(strrchr(b, ')') + 1, " "); s; s = strtok(NULL, " "))
		if (++field == 18 || field == 19 || field == 40 || field == 41)
			say("field %d: %s", field, s);
}

TEST(inherited, "classes over fork, and what /proc tells")
{
	static const int policies[][2] = {{SCHED_FIFO, 7}, {SCHED_RR, 99}, {SCHED_BATCH, 0}, {SCHED_IDLE, 0}, {SCHED_OTHER, 0}};
	for (int i = 0; i < 5; i++)
		for (int reset = 0; reset < 2; reset++)
			for (int nice = -5; nice <= 5; nice += 10) {
				pid_t pid = fork();
				if (pid == 0) {
					setpriority(PRIO_PROCESS, 0, nice);
					err("set", set(policies[i][0] | (reset ? SCHED_RESET_ON_FORK : 0), policies[i][1]));
					show("parent");
					stat_fields();
					child(show_child);
					_exit(0);
				}
				waitpid(pid, 0, 0);
			}
}

TEST(intervals, "sched_rr_get_interval")
{
	struct timespec t = {-1, -1};
	set(SCHED_RR, 1);
	err("of RR", sched_rr_get_interval(0, &t)), say("%ld.%09ld", t.tv_sec, t.tv_nsec);
	set(SCHED_FIFO, 1);
	err("of FIFO", sched_rr_get_interval(0, &t)), say("%ld.%09ld", t.tv_sec, t.tv_nsec);
	set(SCHED_OTHER, 0);
	err("of others", sched_rr_get_interval(0, &t)), num("is a slice", t.tv_sec == 0 && t.tv_nsec < 1000000000);
	err("pid -1", sched_rr_get_interval(-1, &t));
	err("nowhere", sched_rr_get_interval(0, (void *)8));
}

static void limit(int what, rlim_t n)
{
	struct rlimit l = {n, n};
	setrlimit(what, &l);
}

static void as_user(void)
{
	static const int asked[][2] = {{SCHED_FIFO, 1}, {SCHED_FIFO, 10}, {SCHED_RR, 10}, {SCHED_RR, 11}, {SCHED_FIFO, 9}, {SCHED_FIFO, 10},
		{SCHED_OTHER, 0}, {SCHED_IDLE, 0}, {SCHED_OTHER, 0}, {SCHED_IDLE, 0}, {SCHED_BATCH, 0},
		{SCHED_FIFO | SCHED_RESET_ON_FORK, 3}, {SCHED_FIFO, 3}, {SCHED_OTHER | SCHED_RESET_ON_FORK, 0}, {SCHED_OTHER, 0}};
	for (int i = 0; i < (int)(sizeof asked / sizeof *asked); i++) {
		char what[64];
		snprintf(what, sizeof what, "policy %#x, priority %d", asked[i][0], asked[i][1]);
		err(what, set(asked[i][0], asked[i][1]));
	}
	show("at last");
	for (int nice = 5; nice >= -10; nice -= 3) {
		err("setpriority", setpriority(PRIO_PROCESS, 0, nice));
		num("nice", getpriority(PRIO_PROCESS, 0));
	}
	struct sched_param p = {1};
	err("of process 1", sched_setscheduler(1, SCHED_BATCH, &p));
}

TEST(rights, "RLIMIT_RTPRIO and RLIMIT_NICE as a user")
{
	static const int limits[][2] = {{0, 0}, {10, 0}, {10, 20}, {0, 25}, {99, 40}};
	for (int i = 0; i < 5; i++) {
		pid_t pid = fork();
		if (pid == 0) {
			say("limits %d and %d", limits[i][0], limits[i][1]);
			limit(RLIMIT_RTPRIO, limits[i][0]), limit(RLIMIT_NICE, limits[i][1]);
			if (setresgid(1000, 1000, 1000) || setresuid(1000, 1000, 1000))
				say("not a user");
			as_user();
			_exit(0);
		}
		waitpid(pid, 0, 0);
	}
}

static int cpus(void)
{
	int n = sysconf(_SC_NPROCESSORS_ONLN);
	return n > 32 ? 32 : n;
}

// rounds are what children have counted, each in a cache line of its own.
static volatile unsigned long *rounds;

static pid_t spinner(int i, int policy, int priority)
{
	pid_t pid = fork();
	if (pid == 0) {
		set(policy, priority);
		for (;;)
			rounds[8 * i]++;
	}
	return pid;
}

static void end(pid_t *pid, int n)
{
	for (int i = 0; i < n; i++)
		kill(pid[i], SIGKILL);
	for (int i = 0; i < n; i++)
		waitpid(pid[i], 0, 0);
}

static unsigned long sum(int from, int n)
{
	unsigned long s = 0;
	for (int i = from; i < from + n; i++)
		s += rounds[8 * i];
	return s;
}

TEST(strict, "real-time threads come first, and leave the others a little")
{
	int n = cpus();
	pid_t pid[3 * 32];
	rounds = shared(65536);
	set(SCHED_FIFO, 50); // it wakes beside them
	for (int i = 0; i < n; i++)
		pid[i] = spinner(i, SCHED_OTHER, 0);
	for (int i = n; i < 2 * n; i++)
		pid[i] = spinner(i, SCHED_FIFO, 10);
	for (int i = 2 * n; i < 3 * n; i++)
		pid[i] = spinner(i, SCHED_RR, 9);
	usleep(100000);
	unsigned long fair = sum(0, n), high = sum(n, n), low = sum(2 * n, n);
	// Where the machine itself waits for its host it may miss their share of a second.
	for (int i = 0; i < 100 && (i < 4 || sum(0, n) == fair); i++)
		usleep(300000);
	fair = sum(0, n) - fair, high = sum(n, n) - high, low = sum(2 * n, n) - low;
	end(pid, 3 * n);
	num("others have some", fair > 0);
	num("but not a fifth", fair < high / 5);
	num("the lower priority has little", low < high / 2); // nothing, but for a host that is busy
}

TEST(robin, "SCHED_RR takes turns, SCHED_FIFO does not")
{
	int n = cpus();
	pid_t pid[2 * 32];
	rounds = shared(65536);
	set(SCHED_FIFO, 50);
	for (int i = 0; i < 2 * n; i++)
		pid[i] = spinner(i, SCHED_RR, 10);
	usleep(400000);
	int all = 1;
	for (int i = 0; i < 2 * n; i++)
		all &= rounds[8 * i] > 0;
	num("all have run", all);
	end(pid, 2 * n);
	rounds = shared(65536);
	for (int i = 0; i < 2 * n; i++)
		pid[i] = spinner(i, SCHED_FIFO, 10);
	usleep(100000);
	unsigned long before[2 * 32];
	for (int i = 0; i < 2 * n; i++)
		before[i] = rounds[8 * i];
	usleep(300000);
	for (int i = 0; i < 2 * n; i++)
		kill(pid[i], SIGSTOP);
	// The n that ran most, and the rest.
	unsigned long most = 0, rest = 0;
	for (int i = 0; i < 2 * n; i++) {
		unsigned long mine = rounds[8 * i] - before[i];
		int ahead = 0;
		for (int j = 0; j < 2 * n; j++)
			ahead += rounds[8 * j] - before[j] > mine;
		*(ahead < n ? &most : &rest) += mine;
	}
	num("a thread for each processor runs", rest < most / 2);
	end(pid, 2 * n);
}

TEST(raised, "a thread that waits gets another class")
{
	int n = cpus();
	pid_t pid[2 * 32 + 1];
	rounds = shared(65536);
	set(SCHED_FIFO, 50);
	for (int i = 0; i < n; i++)
		pid[i] = spinner(i, SCHED_FIFO, 10);
	pid[n] = spinner(n, SCHED_FIFO, 5);
	usleep(100000);
	unsigned long before = rounds[8 * n], beside = sum(0, n);
	usleep(200000);
	before = rounds[8 * n] - before, beside = sum(0, n) - beside;
	struct sched_param p = {20};
	err("raise", sched_setscheduler(pid[n], SCHED_FIFO, &p));
	usleep(300000);
	num("it waits", before < beside / n / 2);
	num("it runs", rounds[8 * n] > before);
	p.sched_priority = 1;
	err("lower", sched_setscheduler(pid[n], SCHED_RR, &p));
	usleep(100000);
	before = rounds[8 * n], beside = sum(0, n);
	usleep(300000);
	num("it waits again", rounds[8 * n] - before < (sum(0, n) - beside) / n / 2);
	end(pid, n + 1);
}

TEST(wakes, "who is woken comes before those of lower priority")
{
	int n = cpus(), in[2], out[2];
	pid_t pid[3 * 32];
	char c = 0;
	rounds = shared(65536);
	pipe(in), pipe(out);
	set(SCHED_FIFO, 50);
	pid_t echo = fork();
	if (echo == 0) {
		set(SCHED_FIFO, 20);
		while (read(in[0], &c, 1) == 1)
			write(out[1], &c, 1);
	}
	for (int i = 0; i < 2 * n; i++)
		pid[i] = spinner(i, i < n ? SCHED_FIFO : SCHED_OTHER, i < n ? 10 : 0);
	usleep(100000);
	int ok = 0;
	struct timespec a, b;
	clock_gettime(CLOCK_MONOTONIC, &a);
	for (int i = 0; i < 200; i++)
		ok += write(in[1], &c, 1) == 1 && read(out[0], &c, 1) == 1;
	clock_gettime(CLOCK_MONOTONIC, &b);
	num("answers", ok);
	num("at once", b.tv_sec - a.tv_sec < 4); // by slices of the others it is longer
	end(pid, 2 * n), end(&echo, 1);
}
