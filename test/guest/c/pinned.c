// Masks of processors: a thread is in user mode only where it may be, from the return of
// sched_setaffinity on. The output does not depend on how many processors there are.
#include "gt.h"
#include <pthread.h>

static int cpus(void)
{
	int n = sysconf(_SC_NPROCESSORS_ONLN);
	return n > 32 ? 32 : n;
}

static int pin(pid_t tid, uint64_t mask) { return syscall(SYS_sched_setaffinity, tid, 8, &mask); }

static uint64_t mask_of(pid_t tid)
{
	uint64_t mask[16] = {0};
	return syscall(SYS_sched_getaffinity, tid, sizeof mask, mask) < 0 ? 0 : mask[0];
}

static int here(void) { return sched_getcpu(); }

static void end(pid_t *pid, int n)
{
	for (int i = 0; i < n; i++)
		kill(pid[i], SIGKILL);
	for (int i = 0; i < n; i++)
		waitpid(pid[i], 0, 0);
}

static void spinners(pid_t *pid, int n)
{
	for (int i = 0; i < n; i++)
		if ((pid[i] = fork()) == 0)
			for (;;)
				;
}

// elsewhere counts samples outside of a mask, some after calls and sleeps.
static long elsewhere(uint64_t mask, long samples)
{
	long wrong = 0;
	unsigned cpu;
	for (long i = 0; i < samples; i++) {
		wrong += !(mask >> here() & 1);
		if (i % 1000 == 0) {
			syscall(SYS_getcpu, &cpu, 0, 0);
			wrong += !(mask >> cpu & 1);
		}
		if (i % 50000 == 0)
			usleep(100);
	}
	return wrong;
}

TEST(samples, "a pinned thread's samples beside spinners")
{
	int n = cpus();
	pid_t pid[64];
	spinners(pid, n + 2);
	for (int i = 0; i < 2; i++) {
		uint64_t mask = 1ull << i % n;
		err("pin", pin(0, mask));
		num("samples elsewhere", elsewhere(mask, 100000));
	}
	end(pid, n + 2);
}

static void *pinned_thread(void *arg)
{
	uint64_t mask = *(uint64_t *)arg;
	pin(0, mask);
	return (void *)elsewhere(mask, 8000);
}

TEST(many, "threads with several masks at once")
{
	int n = cpus();
	uint64_t all = (2ull << (n - 1)) - 1, mask[24];
	pthread_t id[24];
	for (int i = 0; i < 24; i++) {
		mask[i] = (0x9e3779b97f4a7c15ull * (unsigned)(i + 1)) >> 20 & all;
		if (!mask[i])
			mask[i] = 1ull << i % n;
		pthread_create(&id[i], 0, pinned_thread, &mask[i]);
	}
	long wrong = 0;
	for (int i = 0; i < 24; i++) {
		void *r;
		pthread_join(id[i], &r);
		wrong += (long)r;
	}
	num("samples elsewhere", wrong);
}

TEST(self, "a thread that changes its mask is there at once")
{
	int n = cpus(), wrong = 0;
	for (int i = 0; i < 1000; i++) {
		int cpu = i % n;
		if (i % 7 == 0)
			cpu = (i / 7) % n;
		pin(0, 1ull << cpu);
		unsigned seen = 99;
		syscall(SYS_getcpu, &seen, 0, 0);
		wrong += here() != cpu || (int)seen != cpu;
	}
	num("elsewhere", wrong);
}

static volatile int *at; // where a child is

TEST(other, "a thread that spins is moved before the call returns")
{
	int n = cpus(), wrong = 0, bad = 0;
	at = shared(4096);
	pid_t pid = fork();
	if (pid == 0)
		for (;;)
			at[0] = here() + 1;
	while (!at[0])
		sleep_ms(1);
	for (int i = 0; i < 200; i++) {
		int cpu = (i / 3) % n;
		bad += pin(pid, 1ull << cpu) != 0;
		at[0] = 0; // what is written from here on was asked after the call, but for one
		while (!at[0])
			sched_yield();
		at[0] = 0;
		while (!at[0])
			sched_yield();
		wrong += at[0] != cpu + 1;
	}
	num("errors", bad), num("elsewhere", wrong);
	end(&pid, 1);
}

// field returns a field of /proc/PID/stat.
static long field(pid_t pid, int which)
{
	char name[64], b[2048];
	snprintf(name, sizeof name, "/proc/%d/stat", pid);
	int fd = open(name, O_RDONLY), n = (int)read(fd, b, sizeof b - 1), i = 2;
	close(fd);
	b[n > 0 ? n : 0] = 0;
	for (char *s = strtok(strrchr(b, ')') + 1, " "); s; s = strtok(NULL, " "))
		if (++i == which)
			return atol(s);
	return -1;
}

static void allowed(const char *what, pid_t pid)
{
	char name[64], b[8192];
	snprintf(name, sizeof name, "/proc/%d/status", pid);
	int fd = open(name, O_RDONLY), n = 0;
	for (int r; (r = (int)read(fd, b + n, sizeof b - 1 - n)) > 0;)
		n += r;
	close(fd);
	b[n] = 0;
	char *s = strstr(b, "Cpus_allowed_list:");
	if (s)
		say("%s: %.*s", what, (int)strcspn(s, "\n"), s);
}

TEST(told, "/proc tells the truth")
{
	int n = cpus(), wrong = 0;
	pid_t pid;
	spinners(&pid, 1);
	for (int i = 0; i < 60; i++) {
		int cpu = i % n;
		pin(pid, 1ull << cpu);
		sleep_ms(2);
		wrong += field(pid, 39) != cpu;
		pin(0, 1ull << (i / 2) % n);
		wrong += field(getpid(), 39) != (i / 2) % n;
	}
	num("wrong processors", wrong);
	pin(pid, 1);
	allowed("child", pid);
	end(&pid, 1);
}

TEST(inherited, "masks over fork, exec and threads")
{
	int n = cpus(), wrong = 0;
	for (int i = 0; i < 30; i++) {
		int cpu = i % n;
		pin(0, 1ull << cpu);
		pid_t pid = fork();
		if (pid == 0)
			_exit(mask_of(0) != 1ull << cpu || elsewhere(1ull << cpu, 5000) != 0);
		wrong += wait_for(pid) != 0;
		uint64_t mask = 1ull << cpu;
		pthread_t id;
		void *r;
		pthread_create(&id, 0, pinned_thread, &mask);
		pthread_join(id, &r);
		wrong += r != 0;
	}
	num("wrong", wrong);
	pin(0, 1);
	pid_t pid = vfork();
	if (pid == 0) {
		execl("/proc/self/exe", "pinned", "-mask", (char *)0);
		_exit(9);
	}
	status("exec", wait_for(pid));
}

__attribute__((constructor)) static void after_exec(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "-mask"))
		_exit(mask_of(0) == 1 && elsewhere(1, 5000) == 0 ? 0 : 1);
}

TEST(errors, "errors of the calls")
{
	uint64_t mask = 0, none = 1ull << 63;
	err("empty", pin(0, 0));
	err("no such processor", pin(0, none));
	err("with one that is not there", pin(0, 1 | none));
	num("what is left", (long)mask_of(0));
	err("no such thread", pin(0x3fffffff, 1));
	err("negative", pin(-1, 1));
	err("bad address", syscall(SYS_sched_setaffinity, 0, 8, 8));
	mask = 1;
	err("one byte", syscall(SYS_sched_setaffinity, 0, 1, &mask));
	err("no byte", syscall(SYS_sched_setaffinity, 0, 0, &mask));
	err("get: odd size", syscall(SYS_sched_getaffinity, 0, 9, &mask));
	err("get: no size", syscall(SYS_sched_getaffinity, 0, 0, &mask));
	err("get: no such thread", syscall(SYS_sched_getaffinity, 0x3fffffff, 128, &mask));
	pid_t pid = fork();
	if (pid == 0) {
		if (setresgid(1000, 1000, 1000) || setresuid(1000, 1000, 1000))
			say("not a user");
		err("another's", pin(getppid(), 1));
		err("one's own", pin(0, 1));
		_exit(0);
	}
	wait_for(pid);
}

TEST(stopped, "the mask of one that sleeps or is stopped")
{
	int n = cpus(), wrong = 0;
	at = shared(4096);
	pid_t pid = fork();
	if (pid == 0)
		for (;;) {
			at[0] = here() + 1;
			usleep(200);
		}
	for (int i = 0; i < 100; i++) {
		if (i % 4 == 0)
			kill(pid, SIGSTOP);
		pin(pid, 1ull << i % n);
		if (i % 4 == 0)
			kill(pid, SIGCONT);
		at[0] = 0;
		while (!at[0])
			usleep(100);
		at[0] = 0;
		while (!at[0])
			usleep(100);
		wrong += at[0] != i % n + 1;
	}
	num("elsewhere", wrong);
	end(&pid, 1);
}

TEST(fair, "pinned threads share their processor")
{
	// Two on processor 0 beside two that may be anywhere.
	int n = cpus();
	volatile unsigned long *rounds = shared(65536);
	pid_t pid[4];
	for (int i = 0; i < 4; i++)
		if ((pid[i] = fork()) == 0) {
			if (i < 2)
				pin(0, 1);
			for (;;)
				rounds[8 * i]++;
		}
	sleep_ms(1500);
	end(pid, 4);
	unsigned long a = rounds[0], b = rounds[8];
	num("both ran", a > 0 && b > 0);
	num("alike", a < 3 * b && b < 3 * a);
	num("the others too", rounds[16] > 0 && rounds[24] > 0 && n > 0);
}
