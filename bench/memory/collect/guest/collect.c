// collect FILES ITERATIONS: what single system calls take while the kernel collects
// garbage. FILES empty files stay in memory. Each iteration creates, writes, looks up,
// opens and removes a file, uses a pipe and a TCP connection, and every eighth forks.
//
// A line for each kind of call: `call NAME COUNT MEDIAN P99 P9999 WORST`, in ticks of the
// time-stamp counter (instructions, where QEMU counts those). `user` is the time between
// two calls. Then `heap NAME BEFORE AFTER` for lines of /proc/hardtack/heap, and
// `loop ITERATIONS TICKS`.
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
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

enum { CREATE, WRITE, CLOSE, STAT, OPEN, UNLINK, PIPE, PWRITE, PREAD, SOCKET, CONNECT, ACCEPT, SHUT, FORK, WAIT, USER, ROUND, KINDS };

static const char *names[KINDS] = {"create", "write", "close", "stat", "open", "unlink", "pipe", "pipe-write", "pipe-read",
	"socket", "connect", "accept", "close-socket", "fork", "wait", "user", "iteration"};

static uint32_t *samples[KINDS];
static size_t count[KINDS], room[KINDS];

static void die(const char *what) {
	printf("collect: %s: %s\n", what, strerror(errno));
	exit(1);
}

static inline uint64_t ticks(void) {
	uint32_t lo, hi;
	__asm__ volatile("lfence; rdtsc" : "=a"(lo), "=d"(hi));
	return (uint64_t)hi << 32 | lo;
}

static uint64_t last; // the end of the call before

static inline void note(int kind, uint64_t took) {
	if (count[kind] < room[kind])
		samples[kind][count[kind]++] = took > UINT32_MAX ? UINT32_MAX : took;
}

#define CALL(kind, what, expr)                                                                                             \
	({                                                                                                                     \
		uint64_t t0 = ticks();                                                                                             \
		note(USER, t0 - last);                                                                                             \
		long r = (expr);                                                                                                   \
		uint64_t t1 = ticks();                                                                                             \
		note(kind, t1 - t0);                                                                                               \
		last = ticks();                                                                                                    \
		if (r < 0)                                                                                                         \
			die(what);                                                                                                     \
		r;                                                                                                                 \
	})

static int listener;
static struct sockaddr_in addr = {.sin_family = AF_INET};

static void listen_somewhere(void) {
	socklen_t n = sizeof addr;
	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if ((listener = socket(AF_INET, SOCK_STREAM, 0)) < 0 || bind(listener, (struct sockaddr *)&addr, sizeof addr) ||
	    listen(listener, 8) || getsockname(listener, (struct sockaddr *)&addr, &n))
		die("listen");
}

static void iteration(int i) {
	char buf[128] = {0};
	struct stat st;
	int p[2], on = 1;
	struct linger now = {1, 0};
	int fd = CALL(CREATE, "create", open("/tmp/file", O_CREAT | O_RDWR, 0644));
	CALL(WRITE, "write", write(fd, buf, sizeof buf));
	CALL(CLOSE, "close", close(fd));
	CALL(STAT, "stat", stat("/tmp/file", &st));
	fd = CALL(OPEN, "open", open("/tmp/file", O_RDONLY));
	CALL(CLOSE, "close", close(fd));
	CALL(UNLINK, "unlink", unlink("/tmp/file"));

	CALL(PIPE, "pipe", pipe(p));
	CALL(PWRITE, "pipe write", write(p[1], buf, 1));
	CALL(PREAD, "pipe read", read(p[0], buf, 1));
	CALL(CLOSE, "close", close(p[0]));
	CALL(CLOSE, "close", close(p[1]));

	int c = CALL(SOCKET, "socket", socket(AF_INET, SOCK_STREAM, 0));
	setsockopt(c, SOL_SOCKET, SO_LINGER, &now, sizeof now);
	CALL(CONNECT, "connect", connect(c, (struct sockaddr *)&addr, sizeof addr));
	int s = CALL(ACCEPT, "accept", accept(listener, NULL, NULL));
	setsockopt(s, SOL_SOCKET, SO_LINGER, &now, sizeof on);
	CALL(SHUT, "close", close(c));
	CALL(SHUT, "close", close(s));

	if (i % 8 == 0) {
		pid_t child = CALL(FORK, "fork", fork());
		if (child == 0)
			_exit(0);
		CALL(WAIT, "wait", waitpid(child, NULL, 0));
	}
}

// heap holds lines of /proc/hardtack/heap, and the clock by which its share is reckoned.
struct heap {
	char text[4096];
	double uptime;
};

static double value(struct heap *h, const char *name) {
	char *at = strstr(h->text, name);
	return at ? atof(at + strlen(name)) : -1;
}

static void look(struct heap *h) {
	struct timespec t;
	int fd = open("/proc/hardtack/heap", O_RDONLY);
	ssize_t n = read(fd, h->text, sizeof h->text - 1);
	if (n < 0)
		die("/proc/hardtack/heap");
	h->text[n] = 0;
	close(fd);
	clock_gettime(CLOCK_MONOTONIC, &t);
	h->uptime = t.tv_sec + t.tv_nsec / 1e9;
}

static int up(const void *a, const void *b) {
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	return x < y ? -1 : x > y;
}

static void report(void) {
	for (int k = 0; k < KINDS; k++) {
		uint32_t *s = samples[k];
		size_t n = count[k];
		if (n == 0)
			continue;
		qsort(s, n, sizeof *s, up);
		printf("call %s %zu %u %u %u %u\n", names[k], n, s[n / 2], s[n * 99 / 100], s[n * 9999 / 10000], s[n - 1]);
	}
}

int main(int argc, char **argv) {
	static struct heap before, after;
	static const char *lines[] = {"HeapAlloc", "StackInuse", "TotalAlloc", "NumGC", "PauseMaxNs", "PauseTotalNs", "GCCPUPpm", "NextGC"};
	int files = argc > 1 ? atoi(argv[1]) : 0, iterations = argc > 2 ? atoi(argv[2]) : 1000;
	char name[64];
	setvbuf(stdout, NULL, _IOFBF, 1 << 16);
	mkdir("/tmp", 0755);
	mkdir("/proc", 0755);
	mount("proc", "/proc", "proc", 0, NULL);
	mkdir("/tmp/alive", 0755);
	for (int i = 0; i < files; i++) {
		snprintf(name, sizeof name, "/tmp/alive/file-%d", i);
		int fd = open(name, O_CREAT | O_RDWR, 0644);
		if (fd < 0)
			die(name);
		close(fd);
	}
	listen_somewhere();
	for (int k = 0; k < KINDS; k++) {
		room[k] = (size_t)iterations * (k == CLOSE ? 4 : k == USER ? 24 : k == SHUT ? 2 : 1);
		samples[k] = mmap(NULL, room[k] * sizeof **samples, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
		if (samples[k] == MAP_FAILED || madvise(samples[k], room[k] * sizeof **samples, MADV_DONTFORK))
			die("memory for the samples");
	}
	for (int i = 0; i < 200; i++) // warm
		iteration(i);
	memset(count, 0, sizeof count);
	look(&before);
	last = ticks();
	uint64_t begin = last;
	for (int i = 0; i < iterations; i++) {
		uint64_t t = ticks();
		last = t;
		iteration(i);
		note(ROUND, ticks() - t);
	}
	uint64_t took = ticks() - begin;
	look(&after);
	report();
	for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
		printf("heap %s %.0f %.0f\n", lines[i], value(&before, lines[i]), value(&after, lines[i]));
	double share = (value(&after, "GCCPUPpm") * after.uptime - value(&before, "GCCPUPpm") * before.uptime) / (after.uptime - before.uptime);
	printf("loop %d %llu %.2f\n", iterations, (unsigned long long)took, share / 1e4);
	fflush(stdout);
	return 0;
}
