// The programs of `make bench-cluster`, by the name that they are started with:
//
//	serve   a server and its client, REQUESTS times; process 1 of cluster 1, ends with it
//	churn   fills the kernel's heap and has it collected until cluster 1 has exited
//	quiet   sleeps until then
//	spins   computes in user mode until then
//	both    churn, and serve on another processor, in one kernel; with an argument without churn
//	calls   reads what a call to the monitor of cluster 1 takes, and how cluster 1 is
//	live    says when its cluster came to its first program, in the machine's clock
//	lives   starts that cluster again five times
//	fail    is served a thousand times, and then its kernel panics
//	bells   rings a thousand times for bell, which sleeps
//	bell    waits for that; process 1 of cluster 1
//	fails   is served meanwhile in cluster 0, until that has happened five times
//
// A request is a message over TCP within the machine, a look at a file by the server, and an
// answer. Marks are for the plugin that counts instructions.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { REQUESTS = 50000, WARM = 1000, ALIVE = 5000 };

// MARK(1) and MARK(2) are around a request, 3 and 4 around what is counted by address.
#define MARK(n) __asm__ volatile(".byte 0x0f,0x1f,0x84,0x00; .long 0x48540000+" #n ::: "memory")

static void die(const char *what) {
	printf("failed %s: %s\n", what, strerror(errno));
	exit(1);
}

static long long now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void pause_ms(int ms) {
	struct timespec t = {ms / 1000, ms % 1000 * 1000000L};
	nanosleep(&t, NULL);
}

static char text[16384];

static char *contents(const char *name) {
	int fd = open(name, O_RDONLY);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
	if (fd >= 0)
		close(fd);
	text[n < 0 ? 0 : n] = 0;
	return text;
}

static int has(const char *what) { return strstr(contents("/proc/hardtack/clusters"), what) != NULL; }

static void ask(const char *name, const char *what) {
	int fd = open(name, O_WRONLY);
	if (fd < 0 || write(fd, what, strlen(what)) < 0)
		die(name);
	close(fd);
}

static void pin(int cpu) {
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof set, &set))
		die("sched_setaffinity");
}

static struct sockaddr_in addr = {.sin_family = AF_INET};
static int connection;

static int listener(void) {
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	socklen_t n = sizeof addr;
	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	addr.sin_port = 0;
	if (fd < 0 || bind(fd, (struct sockaddr *)&addr, sizeof addr) || listen(fd, 8) || getsockname(fd, (struct sockaddr *)&addr, &n))
		die("listen");
	return fd;
}

// server starts one, and connects to it.
static void server(void) {
	int fd = listener();
	int file = open("/tmp/page", O_CREAT | O_RDWR, 0644);
	char b[256] = {0};
	if (file < 0 || write(file, b, sizeof b) != sizeof b)
		die("/tmp/page");
	close(file);
	pid_t pid = fork();
	if (pid < 0)
		die("fork");
	if (pid == 0) {
		int c = accept(fd, NULL, NULL);
		struct stat st;
		while (read(c, b, 64) == 64) {
			int f = open("/tmp/page", O_RDONLY);
			if (fstat(f, &st) || read(f, b, sizeof b) != sizeof b || close(f) || write(c, b, sizeof b) != sizeof b)
				break;
		}
		_exit(0);
	}
	connection = socket(AF_INET, SOCK_STREAM, 0);
	if (connect(connection, (struct sockaddr *)&addr, sizeof addr))
		die("connect");
	close(fd);
}

// request says whether it was answered.
static int request(void) {
	char b[256] = {0};
	if (write(connection, b, 64) != 64)
		return 0;
	for (ssize_t got = 0, n; got < (ssize_t)sizeof b; got += n)
		if ((n = read(connection, b + got, sizeof b - got)) <= 0)
			return 0;
	return 1;
}

static void serve(void) {
	server();
	pause_ms(300);
	for (int i = 0; i < REQUESTS + WARM; i++) {
		if (i >= WARM)
			MARK(1);
		if (!request())
			die("request");
		if (i >= WARM)
			MARK(2);
	}
	close(connection);
	wait(NULL);
}

static long long heap(const char *name) {
	char *at = strstr(contents("/proc/hardtack/heap"), name);
	return at ? atoll(at + strlen(name)) : -1;
}

// churn makes and drops what lies on the kernel's heap.
static void churn(int (*over)(void)) {
	char name[64];
	mkdir("/tmp/alive", 0755);
	for (int i = 0; i < ALIVE; i++) {
		snprintf(name, sizeof name, "/tmp/alive/file-%d", i);
		int fd = open(name, O_CREAT | O_RDWR, 0644);
		if (fd < 0)
			die(name);
		close(fd);
	}
	int fd = listener();
	struct linger at_once = {1, 0};
	long long before = heap("NumGC"), bytes = heap("TotalAlloc");
	int rounds = 0;
	for (; rounds % 16 || !over(); rounds++) {
		int p[2];
		int f = open("/tmp/churned", O_CREAT | O_RDWR, 0644);
		close(f);
		unlink("/tmp/churned");
		if (pipe(p))
			die("pipe");
		close(p[0]);
		close(p[1]);
		int c = socket(AF_INET, SOCK_STREAM, 0);
		setsockopt(c, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
		if (connect(c, (struct sockaddr *)&addr, sizeof addr))
			die("connect");
		int s = accept(fd, NULL, NULL);
		setsockopt(s, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
		close(c);
		close(s);
		if (rounds % 8 == 0) {
			pid_t child = fork();
			if (child == 0)
				_exit(0);
			waitpid(child, NULL, 0);
		}
	}
	printf("churned %d %lld %lld\n", rounds, heap("NumGC") - before, heap("TotalAlloc") - bytes);
}

static int exited(void) { return has("1 exited"); }

static pid_t served;
static int ended(void) { return waitpid(served, NULL, WNOHANG) == served; }

static void both(int quiet) {
	served = fork();
	if (served == 0) {
		pin(1);
		serve();
		_exit(0);
	}
	pin(0);
	if (!quiet) {
		churn(ended);
		return;
	}
	while (!ended())
		pause_ms(100);
}

static void await(const char *what) {
	for (int i = 0; !has(what); i++) {
		if (i == 60000)
			die(what);
		pause_ms(1);
	}
}

static void calls(void) {
	await("1 running");
	while (!strstr(contents("/proc/hardtack/monitors"), "1 cpus"))
		pause_ms(1);
	pause_ms(500);
	MARK(3);
	contents("/proc/hardtack/monitors");
	MARK(4);
	printf("monitor %s", text);
}

static void lives(void) {
	char line[64];
	await("1 running");
	for (int i = 0; i < 5; i++) {
		pause_ms(300);
		printf("asked %lld\n", now());
		fflush(stdout);
		ask("/proc/hardtack/clusters", "restart 1");
		snprintf(line, sizeof line, "1 running lives %d", i + 2);
		await(line);
	}
	pause_ms(300);
}

// Of abi/cluster.
enum { LISTEN = 0x40444802, ACCEPT = 0x4803, CONNECT_RINGS = 0x40484805, RINGS = 0x4807, AWAIT = 0x4808 };

struct address {
	uint32_t cluster;
	char name[64];
	uint32_t pages;
};

static int device(void) {
	int fd = open("/dev/cluster", O_RDWR);
	if (fd < 0)
		die("/dev/cluster");
	return fd;
}

// bells marks 5 and 6 around each ring, bell 7 after it was woken. The pauses are long enough for both
// kernels to sleep.
static void bells(void) {
	struct address a = {1, "bell", 1};
	int fd = device();
	while (ioctl(fd, CONNECT_RINGS, &a))
		pause_ms(10);
	int rings = ioctl(fd, RINGS, 0);
	if (rings < 0)
		die("rings");
	for (int i = 0; i < WARM; i++) {
		pause_ms(5);
		MARK(5);
		ssize_t n = write(rings, "", 1);
		MARK(6);
		if (n != 1)
			die("ring");
	}
	pause_ms(50);
}

static void bell(void) {
	struct address a = {0, "bell", 0};
	int fd = device();
	if (ioctl(fd, LISTEN, &a))
		die("listen");
	int c = ioctl(fd, ACCEPT, 0), rings = ioctl(c, RINGS, 0);
	if (rings < 0)
		die("rings");
	for (;;) {
		int got = ioctl(rings, AWAIT, 1000000000L);
		MARK(7);
		if (got && errno != ETIMEDOUT)
			break;
	}
	for (;;)
		pause();
}

static void fail(void) {
	server();
	if (!request())
		die("request");
	printf("first %lld\n", now());
	for (int i = 0; i < 1000; i++)
		if (!request())
			die("request");
	printf("panics %lld\n", now());
	fflush(stdout);
	ask("/proc/hardtack/oops", "panic");
}

// started returns how often the second cluster has begun. A life may end between two looks.
static int started(void) {
	int n = 0;
	char *line = strstr(contents("/proc/hardtack/clusters"), "\n1 ");
	if (line && (line = strstr(line, " lives ")))
		n = atoi(line + 7);
	return n;
}

static void fails(void) {
	long long sent = 0, lost = 0;
	server();
	while (started() < 6) {
		for (int i = 0; i < 50; i++, sent++)
			lost += !request();
		pause_ms(1);
	}
	printf("lost %lld %lld\n", lost, sent);
}

int main(int argc, char **argv) {
	const char *name = strrchr(argv[0], '/');
	name = name ? name + 1 : argv[0];
	mkdir("/tmp", 0755);
	mkdir("/proc", 0755);
	mount("proc", "/proc", "proc", 0, NULL);
	setvbuf(stdout, NULL, _IOLBF, 4096);
	if (!strcmp(name, "serve")) {
		serve();
	} else if (!strcmp(name, "churn")) {
		churn(exited);
	} else if (!strcmp(name, "quiet")) {
		await("1 running");
		while (!exited())
			pause_ms(100);
	} else if (!strcmp(name, "spins")) {
		await("1 running");
		while (!exited())
			for (volatile int i = 0; i < 20000000; i++)
				;
	} else if (!strcmp(name, "both")) {
		both(argc > 1);
	} else if (!strcmp(name, "calls")) {
		calls();
	} else if (!strcmp(name, "live")) {
		printf("lives %lld\n", now());
		for (;;)
			pause();
	} else if (!strcmp(name, "lives")) {
		lives();
	} else if (!strcmp(name, "fail")) {
		fail();
	} else if (!strcmp(name, "fails")) {
		fails();
	} else if (!strcmp(name, "bells")) {
		bells();
	} else if (!strcmp(name, "bell")) {
		bell();
	}
	fflush(stdout);
	return 0;
}
