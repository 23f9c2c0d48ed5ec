// swarm loads Redis servers that init started in the guest, as in figure 7 of Elphinstone et al.,
// does: each server has two clients of its own, all on one machine.
//
//	swarm SERVERS MILLISECONDS WINDOWS
//
// For 1 to SERVERS servers, on ports from 6379, it counts requests in windows of time
// by the guest's clock and prints "redisN requests median minimum": nanoseconds a
// request of all clients together. Clients read keys at random, as YCSB's workload C.
// First it shows what the kernel says of its nucleus.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { port = 6379, clients = 2, keys = 1000, value = 100 };

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static long long now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static int connect_to(int server)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port + server), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	if (fd < 0 || connect(fd, (struct sockaddr *)&a, sizeof a))
		die("connect to redis");
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	return fd;
}

// exchange sends a request and reads an answer of a known length.
static void exchange(int fd, const char *request, size_t len, const char *begin, size_t answer)
{
	char buf[256];
	if (write(fd, request, len) != (ssize_t)len)
		die("write to redis");
	for (size_t got = 0; got < answer;) {
		ssize_t k = read(fd, buf + got, sizeof buf - got);
		if (k <= 0)
			die("read from redis");
		got += (size_t)k;
		if (got >= answer && (got > answer || memcmp(buf, begin, strlen(begin)))) {
			fprintf(stderr, "redis answered %.40s\n", buf);
			exit(1);
		}
	}
}

static void fill(int server)
{
	int fd = connect_to(server);
	char text[256], content[value + 1];
	memset(content, 'v', value);
	content[value] = 0;
	for (int i = 0; i < keys; i++) {
		int n = snprintf(text, sizeof text, "*3\r\n$3\r\nSET\r\n$6\r\nkey%03d\r\n$%d\r\n%s\r\n", i, value, content);
		exchange(fd, text, (size_t)n, "+OK", 5);
	}
	close(fd);
}

// Each client counts in a cache line of its own.
struct count {
	_Atomic long n;
	char pad[120];
};

static void client(int server, struct count *c)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	int fd = connect_to(server);
	char text[64];
	unsigned seed = (unsigned)getpid();
	for (;; c->n++) {
		int n = snprintf(text, sizeof text, "*2\r\n$3\r\nGET\r\n$6\r\nkey%03d\r\n", rand_r(&seed) % keys);
		exchange(fd, text, (size_t)n, "$100\r\nv", 6 + value + 2);
	}
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static void show(const char *name)
{
	char line[256];
	FILE *f = fopen(name, "r");
	if (!f)
		die(name);
	while (fgets(line, sizeof line, f))
		fputs(line, stdout);
	fclose(f);
}

int main(int argc, char **argv)
{
	if (argc != 4)
		return 2;
	int servers = atoi(argv[1]), windows = atoi(argv[3]);
	long ms = atol(argv[2]);
	show("/proc/hardtack/nucleus");
	fflush(stdout);
	struct count *count = mmap(NULL, sizeof *count * clients * 16, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	for (int i = 0; i < servers; i++)
		fill(i);
	for (int n = 1; n <= servers; n++) {
		pid_t pids[clients * 16];
		int running = n * clients;
		for (int i = 0; i < running; i++)
			if ((pids[i] = fork()) == 0)
				client(i / clients, &count[i]);
		double each[64];
		long requests = 0;
		for (int w = -1; w < windows && w < 64; w++) { // the first is for warming up
			long before = 0, after = 0;
			for (int i = 0; i < running; i++)
				before += count[i].n;
			long long began = now();
			struct timespec t = {ms / 1000, ms % 1000 * 1000000};
			nanosleep(&t, NULL);
			for (int i = 0; i < running; i++)
				after += count[i].n;
			if (w < 0)
				continue;
			if (after == before) {
				fprintf(stderr, "no request in %ld ms\n", ms);
				return 1;
			}
			each[w] = (double)(now() - began) / (double)(after - before);
			requests += after - before;
		}
		for (int i = 0; i < running; i++)
			kill(pids[i], SIGKILL);
		for (int i = 0; i < running; i++)
			waitpid(pids[i], NULL, 0);
		qsort(each, (size_t)windows, sizeof *each, ascending);
		printf("redis%d %ld %.1f %.1f\n", n, requests, each[windows / 2], each[0]);
		fflush(stdout);
	}
	return 0;
}
