// The programs of `make bench-cluster` that move processors and share work, by name:
//
//	takes   process 1 of cluster 1: whenever a processor has come there, it goes there
//	moves   has a processor move to cluster 1 and back, ten times
//	jobs    work for the kernel on each processor: fork, open, mmap, pipe; in cluster 0 until
//	        the other clusters have done theirs. Arguments: how many other clusters
//
// Marks are for the plugin that counts instructions: 5 where a processor is asked for, 6 at
// the first instruction of a program there, 7 and 8 around a processor's jobs.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { WARM = 20, JOBS = 150, MOVES = 10 };

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

static void jobs(int others) {
	int n = sysconf(_SC_NPROCESSORS_ONLN);
	int fd = open("/tmp/page", O_CREAT | O_RDWR, 0644);
	char b[4096] = {1}, line[32];
	volatile int *here = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (fd < 0 || write(fd, b, sizeof b) != sizeof b || here == MAP_FAILED)
		die("/tmp/page");
	close(fd);
	for (int cpu = 0; cpu < n; cpu++) {
		pid_t pid = fork();
		if (pid < 0)
			die("fork");
		if (pid > 0)
			continue;
		if (pin(cpu))
			die("sched_setaffinity");
		for (int i = 0; i < WARM; i++)
			job();
		__sync_fetch_and_add(here, 1);
		while (*here < n)
			sched_yield();
		MARK(7);
		for (int i = 0; i < JOBS; i++)
			job();
		MARK(8);
		// Nobody has its processor for itself while others still work.
		__sync_fetch_and_add(here, 1);
		while (*here < 2 * n)
			job();
		_exit(0);
	}
	for (int status; wait(&status) > 0;)
		if (status)
			die("a worker");
	for (int i = 1; i <= others; i++) {
		snprintf(line, sizeof line, "%d exited", i);
		await(clusters, line);
	}
	printf("jobs %d\n", n);
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
		jobs(argc > 1 ? atoi(argv[1]) : 0);
	fflush(stdout);
	return 0;
}
