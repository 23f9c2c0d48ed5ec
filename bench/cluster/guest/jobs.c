// The programs of `make bench-cluster` that move processors and share work, by name:
//
//	takes   process 1 of cluster 1: whenever a processor has come there, it goes there
//	moves   has a processor move to cluster 1 and back, ten times
//	jobs    work for the kernel on each processor: fork, open, mmap, pipe; in cluster 0 until
//	        the other clusters have done theirs. Arguments: how many other clusters
//	beside  the same jobs in cluster 0 while the other clusters run computes, which does nothing else
//	        than that in user mode
//	redis   a Redis on each processor and a client beside it, in cluster 0 as jobs
//	init    the same, as process 1 of Linux
//
// Marks are for the plugin that counts instructions: 5 where a processor is asked for, 6 at
// the first instruction of a program there, 7 and 8 around a processor's jobs.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <arpa/inet.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { WARM = 20, JOBS = 150, MOVES = 10, REQUESTS = 3000, PORT = 6379 };

#define MARK(n) __asm__ volatile(".byte 0x0f,0x1f,0x84,0x00; .long 0x48540000+" #n ::: "memory")

static void die(const char *what) {
	printf("failed %s: %s\n", what, strerror(errno));
	exit(1);
}

static void pause_ms(int ms) {
	struct timespec t = {ms / 1000, ms % 1000 * 1000000L};
	nanosleep(&t, NULL);
}

static int has(const char *name, const char *what) {
	static char text[16384];
	int fd = open(name, O_RDONLY);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
	if (fd >= 0)
		close(fd);
	text[n < 0 ? 0 : n] = 0;
	return strstr(text, what) != NULL;
}

static void await(const char *name, const char *what) {
	for (int i = 0; !has(name, what); i++) {
		if (i == 60000)
			die(what);
		pause_ms(1);
	}
}

static int pin(int cpu) {
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	return sched_setaffinity(0, sizeof set, &set);
}

static const char *clusters = "/proc/hardtack/clusters";

static void ask(const char *what) {
	int fd = open(clusters, O_WRONLY);
	if (fd < 0 || write(fd, what, strlen(what)) < 0)
		die(what);
	close(fd);
}

static void takes(void) {
	struct sockaddr_nl a = {.nl_family = AF_NETLINK, .nl_groups = 1};
	int fd = socket(AF_NETLINK, SOCK_DGRAM, NETLINK_KOBJECT_UEVENT);
	char b[4096];
	if (fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof a))
		die("netlink");
	for (;;) {
		ssize_t n = recv(fd, b, sizeof b - 1, 0);
		if (n < 0)
			die("recv");
		b[n] = 0;
		if (strncmp(b, "online@", 7))
			continue;
		if (pin(1))
			die("sched_setaffinity");
		MARK(6);
		if (pin(0))
			die("sched_setaffinity");
	}
}

static void moves(void) {
	await(clusters, "1 running");
	await("/proc/hardtack/monitors", "1 cpus");
	for (int i = 0; i < MOVES; i++) {
		pause_ms(200);
		MARK(5);
		ask("cores 1 0 1");
		MARK(9);
		pause_ms(200);
		ask("cores 1 1 0");
	}
	for (int i = 0; i < MOVES; i++) {
		pause_ms(50);
		MARK(10);
		ask("memory 32M 0 1");
		MARK(11);
		ask("memory 32M 1 0");
	}
	printf("moved\n");
}

static void job(void) {
	int p[2], fd = open("/tmp/page", O_RDONLY);
	char b[4096];
	if (fd < 0 || read(fd, b, sizeof b) != sizeof b || close(fd))
		die("/tmp/page");
	char *m = mmap(NULL, 16 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (m == MAP_FAILED)
		die("mmap");
	for (int i = 0; i < 16; i++)
		m[4096 * i] = 1;
	munmap(m, 16 * 4096);
	if (pipe(p) || write(p[1], b, sizeof b) != sizeof b || read(p[0], b, sizeof b) != sizeof b || close(p[0]) || close(p[1]))
		die("pipe");
	pid_t pid = fork();
	if (pid == 0)
		_exit(0);
	if (pid < 0 || waitpid(pid, NULL, 0) != pid)
		die("fork");
}

// share has a worker for each processor do what each of them is to do, n times at once, between
// marks; and then go on until all have done it: nobody has the machine for itself.
static void share(int others, void (*begin)(int cpu), void (*each)(void), int count) {
	int n = sysconf(_SC_NPROCESSORS_ONLN);
	char line[32];
	volatile int *here = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t workers[64];
	if (here == MAP_FAILED || n > 64)
		die("mmap");
	for (int cpu = 0; cpu < n; cpu++) {
		if ((workers[cpu] = fork()) < 0)
			die("fork");
		if (workers[cpu] > 0)
			continue;
		if (pin(cpu))
			die("sched_setaffinity");
		begin(cpu);
		for (int i = 0; i < WARM; i++)
			each();
		__sync_fetch_and_add(here, 1);
		while (*here < n)
			sched_yield();
		MARK(7);
		for (int i = 0; i < count; i++)
			each();
		MARK(8);
		__sync_fetch_and_add(here, 1);
		while (*here < 2 * n)
			each();
		_exit(0);
	}
	for (int cpu = 0, status; cpu < n; cpu++)
		if (waitpid(workers[cpu], &status, 0) < 0 || status)
			die("a worker");
	for (int i = 1; i <= others; i++) {
		snprintf(line, sizeof line, "%d exited", i);
		await(clusters, line);
	}
	printf("jobs %d\n", n);
}

static void nothing(int cpu) {}

static void page(void) {
	char b[4096] = {1};
	int fd = open("/tmp/page", O_CREAT | O_RDWR, 0644);
	if (fd < 0 || write(fd, b, sizeof b) != sizeof b || close(fd))
		die("/tmp/page");
}

static int connection;

// serve starts a Redis on this processor, and connects to it.
static void serve(int cpu) {
	char port[16];
	snprintf(port, sizeof port, "%d", PORT + cpu);
	pid_t pid = fork();
	if (pid == 0) {
		execl("/usr/bin/redis-server", "redis-server", "/etc/redis.conf", "--port", port, NULL);
		_exit(1);
	}
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(PORT + cpu), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	for (int i = 0;; i++) {
		connection = socket(AF_INET, SOCK_STREAM, 0);
		if (!connect(connection, (struct sockaddr *)&a, sizeof a))
			return;
		close(connection);
		if (i == 10000)
			die("connect to redis");
		pause_ms(5);
	}
}

static void request(void) {
	static const char set[] = "*3\r\n$3\r\nSET\r\n$9\r\nkey:00001\r\n$3\r\nxxx\r\n";
	char b[8];
	if (write(connection, set, sizeof set - 1) != sizeof set - 1 || read(connection, b, sizeof b) != 5 || memcmp(b, "+OK\r\n", 5))
		die("redis");
}

// linux_init makes of Linux what the kernel here is from the start.
static void linux_init(void) {
	char name[64];
	mount("sysfs", "/sys", "sysfs", 0, NULL);
	for (int cpu = 1; cpu < 64; cpu++) {
		snprintf(name, sizeof name, "/sys/devices/system/cpu/cpu%d/online", cpu);
		int fd = open(name, O_WRONLY);
		if (fd >= 0 && write(fd, "1", 1) == 1)
			close(fd);
	}
	struct ifreq up = {.ifr_name = "lo", .ifr_flags = IFF_UP};
	if (ioctl(socket(AF_INET, SOCK_DGRAM, 0), SIOCSIFFLAGS, &up))
		die("lo");
	share(0, serve, request, REQUESTS);
	printf("init: done\n");
	fflush(stdout);
	reboot(RB_AUTOBOOT);
}

int main(int argc, char **argv) {
	const char *name = strrchr(argv[0], '/');
	name = name ? name + 1 : argv[0];
	mkdir("/tmp", 0755);
	mkdir("/proc", 0755);
	mkdir("/sys", 0755);
	mount("proc", "/proc", "proc", 0, NULL);
	setvbuf(stdout, NULL, _IOLBF, 4096);
	if (!strcmp(name, "takes"))
		takes();
	else if (!strcmp(name, "moves"))
		moves();
	else if (!strcmp(name, "jobs"))
		page(), share(argc > 1 ? atoi(argv[1]) : 0, nothing, job, JOBS);
	else if (!strcmp(name, "computes"))
		for (;;)
			__asm__ volatile("" ::: "memory");
	else if (!strcmp(name, "beside")) {
		for (int i = 1; i <= (argc > 1 ? atoi(argv[1]) : 0); i++) {
			char line[32];
			snprintf(line, sizeof line, "%d running", i);
			await(clusters, line);
		}
		pause_ms(50);
		page(), share(0, nothing, job, JOBS);
	} else if (!strcmp(name, "redis"))
		share(argc > 1 ? atoi(argv[1]) : 0, serve, request, REQUESTS);
	else if (!strcmp(name, "init"))
		linux_init();
	fflush(stdout);
	return 0;
}
