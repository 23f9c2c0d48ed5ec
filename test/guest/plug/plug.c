// Processors that go and come. It runs in guests only: never on the machine of the tests,
// whose processors are not ours (guests have /guesttest).
#include "../c/gt.h"
#include <linux/netlink.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>

#define DIR "/sys/devices/system/cpu/"

static char text[4096];

static const char *get(const char *name)
{
	char path[200];
	snprintf(path, sizeof path, DIR "%s", name);
	int fd = open(path, O_RDONLY);
	if (fd < 0)
		return strerrorname_np(errno);
	int n = read(fd, text, sizeof text - 1);
	close(fd);
	text[n < 0 ? 0 : n] = 0;
	text[strcspn(text, "\n")] = 0;
	return text;
}

static int put(const char *name, const char *value)
{
	char path[200];
	snprintf(path, sizeof path, DIR "%s", name);
	int fd = open(path, O_WRONLY);
	if (fd < 0)
		return -errno;
	int r = write(fd, value, strlen(value));
	r = r < 0 ? -errno : r;
	close(fd);
	return r;
}

static const char *res(int r)
{
	static char s[20];
	if (r < 0)
		return strerrorname_np(-r);
	snprintf(s, sizeof s, "%d", r);
	return s;
}

static int turn(int cpu, int on)
{
	char name[32];
	snprintf(name, sizeof name, "cpu%d/online", cpu);
	return put(name, on ? "1" : "0");
}

static int pin(pid_t tid, uint64_t mask) { return syscall(SYS_sched_setaffinity, tid, 8, &mask) < 0 ? -errno : 0; }

static uint64_t mask_of(pid_t tid)
{
	uint64_t mask[16] = {0};
	return syscall(SYS_sched_getaffinity, tid, sizeof mask, mask) < 0 ? 99 : mask[0];
}

static int lines(const char *path, const char *prefix)
{
	char line[4096];
	int n = 0;
	FILE *f = fopen(path, "r");
	while (f && fgets(line, sizeof line, f))
		n += strncmp(line, prefix, strlen(prefix)) == 0 && line[strlen(prefix)] != ' ';
	if (f)
		fclose(f);
	return n;
}

static int cpus(void) { return sysconf(_SC_NPROCESSORS_CONF); }

static void guard(void)
{
	if (access("/guesttest", X_OK) < 0 || geteuid() != 0 || cpus() < 2) {
		say("not here");
		exit(1);
	}
}

static void state(const char *when)
{
	say("%s:", when);
	say("  online %s", get("online"));
	say("  offline %s", get("offline"));
	say("  cpu1/online %s", get("cpu1/online"));
	say("  processors %ld of %ld", sysconf(_SC_NPROCESSORS_ONLN), sysconf(_SC_NPROCESSORS_CONF));
	say("  mask %lx", (long)mask_of(0));
	say("  cpuinfo %d stat %d", lines("/proc/cpuinfo", "processor"), lines("/proc/stat", "cpu"));
	say("  topology %d", access(DIR "cpu1/topology/core_id", F_OK) == 0);
}

TEST(files, "the files and their modes")
{
	guard();
	const char *name[] = {"online", "offline", "present", "possible", "cpu0/online", "cpu1/online"};
	for (int i = 0; i < 6; i++) {
		char path[200];
		struct stat st;
		snprintf(path, sizeof path, DIR "%s", name[i]);
		if (stat(path, &st) < 0)
			say("%s: %s", name[i], strerrorname_np(errno));
		else
			say("%s: %o %s", name[i], st.st_mode, get(name[i]));
	}
}

TEST(errors, "what is refused")
{
	guard();
	const char *bad[] = {"2", "x", "-1", "o", "\n", " 0", "tea"};
	for (int i = 0; i < 7; i++)
		say("%d: %s", i, res(put("cpu1/online", bad[i])));
	const char *good[] = {"1", "1\n", "y", "Yes", "on", "oN\n", "10"};
	for (int i = 0; i < 7; i++)
		say("%s: %s", good[i], res(put("cpu1/online", good[i])));
	say("cpu0: %s", res(put("cpu0/online", "0")));
	say("the list: %s", res(put("present", "0")));
	fflush(stdout);
	IN_CHILD("as a user", {
		setgid(1000);
		setuid(1000);
		say("a user: %s", res(put("cpu1/online", "0")));
	});
	say("online %s", get("cpu1/online"));
}

TEST(goes, "a processor goes and comes")
{
	guard();
	state("before");
	say("off: %s", res(turn(1, 0)));
	state("off");
	say("again: %s", res(turn(1, 0)));
	say("a mask of it: %s", res(pin(0, 2)));
	say("a mask with it: %s", res(pin(0, 3)));
	say("mask %lx", (long)mask_of(0));
	say("on: %s", res(turn(1, 1)));
	say("mask %lx", (long)mask_of(0));
	say("a mask of it: %s", res(pin(0, 2)));
	say("on cpu %d", sched_getcpu());
	pin(0, ~0ull);
	state("on");
}

TEST(others, "all but the first go")
{
	guard();
	int n = cpus();
	for (int i = 1; i < n; i++)
		say("%d off: %s", i, res(turn(i, 0))), say("  online %s", get("online"));
	state("off");
	for (int i = n - 1; i > 0; i--)
		say("%d on: %s", i, res(turn(i, 1))), say("  offline %s", get("offline"));
	state("on");
}

TEST(masks, "threads whose mask has no processor left")
{
	guard();
	volatile long *count = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int early[2], late[2];
	pipe(early), pipe(late);
	char c;
	pid_t spins = FORK({ pin(0, 2); for (;;) count[0]++; });
	pid_t woken = FORK({ pin(0, 2); count[1] = 1; read(early[0], &c, 1); count[1] = 2; pause(); });
	pid_t sleeps = FORK({ pin(0, 2); count[2] = 1; read(late[0], &c, 1); count[2] = 2; pause(); });
	say("ready %d", until(count[0] && count[1] && count[2]));
	sleep_ms(100);
	say("masks %lx %lx %lx", (long)mask_of(spins), (long)mask_of(woken), (long)mask_of(sleeps));
	say("off: %s", res(turn(1, 0)));
	long was = count[0];
	say("it runs on %d", until(count[0] > was + 1000));
	write(early[1], "x", 1);
	say("woken %d", until(count[1] == 2));
	say("masks %lx %lx %lx", (long)mask_of(spins), (long)mask_of(woken), (long)mask_of(sleeps));
	say("on: %s", res(turn(1, 1)));
	write(late[1], "x", 1);
	say("woken %d", until(count[2] == 2));
	say("masks %lx %lx %lx", (long)mask_of(spins), (long)mask_of(woken), (long)mask_of(sleeps));
	pid_t all[] = {spins, woken, sleeps};
	for (int i = 0; i < 3; i++) {
		kill(all[i], SIGKILL);
		waitpid(all[i], 0, 0);
	}
}

static void event(int fd)
{
	char b[8192];
	for (;;) {
		struct sockaddr_nl from;
		socklen_t len = sizeof from;
		struct pollfd p = {fd, POLLIN};
		if (poll(&p, 1, 5000) != 1) {
			say("no event");
			return;
		}
		int n = recvfrom(fd, b, sizeof b - 1, 0, (void *)&from, &len);
		if (n <= 0 || !strstr(b, "@/devices/system/cpu/cpu1"))
			continue;
		say("%s from %d groups %x", b, from.nl_pid, from.nl_groups);
		for (char *s = b + strlen(b) + 1; s < b + n; s += strlen(s) + 1)
			if (!strncmp(s, "ACTION", 6) || !strncmp(s, "DEVPATH", 7) || !strncmp(s, "SUBSYS", 6))
				say("  %s", s);
			else if (!strncmp(s, "SEQNUM=", 7))
				say("  numbered %d", atoi(s + 7) > 0);
		return;
	}
}

TEST(events, "who listens hears of it")
{
	guard();
	int fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_KOBJECT_UEVENT);
	struct sockaddr_nl at = {.nl_family = AF_NETLINK, .nl_groups = 1};
	must(bind(fd, (void *)&at, sizeof at), "bind");
	turn(1, 0);
	event(fd);
	turn(1, 1);
	event(fd);
}

// The storm: processors go and come while threads compute, talk and sleep.

static _Atomic int over;
static volatile long *work; // a line of 8 words for each worker
enum { workers = 12 };

static int pair[2][2];

static void *computes(void *arg)
{
	long i = (long)arg;
	while (!over)
		work[8 * i]++;
	return 0;
}

// pinned moves from one processor to the next, which may be off.
static void *pinned(void *arg)
{
	long i = (long)arg;
	for (int cpu = 0; !over; cpu = (cpu + 1) % cpus()) {
		int r = pin(0, 1ull << cpu);
		if (r != 0 && r != -EINVAL)
			work[8 * i + 1] = r;
		for (int k = 0; k < 20000 && !over; k++)
			work[8 * i]++;
	}
	return 0;
}

static void *sends(void *arg)
{
	long i = (long)arg;
	for (long n = 1; !over; n++) {
		write(pair[0][1], &n, 8);
		long back = 0;
		read(pair[1][0], &back, 8);
		if (back != n)
			work[8 * i + 1] = n;
		work[8 * i] = n;
	}
	close(pair[0][1]);
	return 0;
}

static void *answers(void *arg)
{
	long i = (long)arg, n;
	pin(0, 2);
	while (read(pair[0][0], &n, 8) == 8) {
		write(pair[1][1], &n, 8);
		work[8 * i]++;
	}
	return 0;
}

static void *sleeps(void *arg)
{
	long i = (long)arg;
	int fd = timerfd_create(CLOCK_MONOTONIC, 0);
	while (!over) {
		struct itimerspec one = {.it_value.tv_nsec = 1000000};
		uint64_t n;
		timerfd_settime(fd, 0, &one, 0);
		if (read(fd, &n, 8) != 8 || n != 1)
			work[8 * i + 1]++;
		usleep(500);
		work[8 * i]++;
	}
	return 0;
}

static int rounds(void)
{
	int n = 30;
	FILE *f = fopen("/rounds", "r");
	if (f) {
		fscanf(f, "%d", &n);
		fclose(f);
	}
	return n;
}

TEST(storm, "processors go and come under load")
{
	guard();
	void *(*run[workers])(void *) = {computes, computes, pinned, pinned, pinned, sends, answers, sleeps, sleeps, sleeps, pinned, computes};
	pthread_t t[workers];
	work = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pipe(pair[0]), pipe(pair[1]);
	for (long i = 0; i < workers; i++)
		pthread_create(&t[i], 0, run[i], (void *)i);
	int wrong = 0, idle = 0;
	long was[workers] = {0};
	int many = rounds();
	for (int r = 0; r < many; r++) {
		int cpu = 1 + r % (cpus() - 1);
		wrong += turn(cpu, 0) != 1;
		if (r % 3 == 0)
			usleep(300);
		wrong += turn(cpu, 1) != 1;
		if (r % 10 == 9) {
			usleep(100000);
			pid_t pid = fork(); // and processes
			if (pid == 0)
				_exit(7);
			int st;
			wrong += waitpid(pid, &st, 0) != pid || WEXITSTATUS(st) != 7;
			if (r % 30 == 29)
				for (int i = 0; i < workers; i++) {
					int k = 0;
					while (work[8 * i] == was[i] && k++ < 100)
						usleep(10000);
					idle += work[8 * i] == was[i];
					was[i] = work[8 * i];
				}
		}
	}
	over = 1;
	for (int i = 0; i < workers; i++) {
		pthread_join(t[i], 0);
		if (work[8 * i + 1])
			say("worker %d: %ld", i, work[8 * i + 1]);
	}
	say("wrong %d, stuck %d, online %s", wrong, idle, get("online"));
}
