// A program that behaves runs beside one that takes all memory, in each of several ways:
// no call of the first may fail, and the machine goes on.
//
// reserve [milliseconds [name]]; it runs as process 1 of a Hardtack guest.
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { offender = 1000, innocent = 1001, most = 20000 };

static struct {
	volatile long failed, rounds, stop, deaths;
	int errors[200];
	long took[most];
} *shared;

static long now(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000L + ts.tv_nsec / 1000;
}

static void nap(int ms)
{
	struct timespec ts = {ms / 1000, ms % 1000 * 1000000L};
	nanosleep(&ts, NULL);
}

static void become(int id)
{
	if (setgroups(0, NULL) < 0 || setresgid(id, id, id) < 0 || setresuid(id, id, id) < 0)
		_exit(99);
}

// check counts a call that failed, and says the first few times which.
static long check(const char *what, long r)
{
	if (r >= 0)
		return r;
	if (shared->failed++ < 5)
		printf("    %s: %s\n", what, strerror(errno));
	return r;
}

static void round_of_pipe(void)
{
	int p[2];
	char c = 'x';
	if (check("pipe", pipe(p)) < 0)
		return;
	check("write to a pipe", write(p[1], &c, 1));
	check("read from a pipe", read(p[0], &c, 1));
	close(p[0]);
	close(p[1]);
}

static void round_of_file(void)
{
	static char text[8192];
	int fd = check("open", open("/tmp/mail", O_CREAT | O_RDWR | O_TRUNC, 0600));
	if (fd < 0)
		return;
	if (check("write to a file", write(fd, text, sizeof text)) >= 0)
		check("read from a file", pread(fd, text, sizeof text, 0) == sizeof text ? 0 : -1);
	close(fd);
	check("unlink", unlink("/tmp/mail"));
}

static void round_of_fork(void)
{
	int st;
	pid_t pid = check("fork", fork());
	if (pid == 0) {
		char *m = mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (m == MAP_FAILED)
			_exit(1);
		memset(m, 1, 1 << 16);
		_exit(0);
	}
	if (pid > 0 && (check("wait", waitpid(pid, &st, 0)) < 0 || st)) {
		errno = 0;
		check("child", -1);
	}
}

static char own[2 << 20];

static void behave(void)
{
	become(innocent);
	memset(own, 1, sizeof own); // it is larger than each of many small ones
	while (!shared->stop) {
		long t = now();
		round_of_pipe();
		round_of_file();
		round_of_fork();
		t = now() - t;
		if (shared->rounds < most)
			shared->took[shared->rounds++] = t;
		nap(5);
	}
	_exit(0);
}

static void raise_files(void)
{
	struct rlimit rl = {1 << 20, 1 << 20};
	setrlimit(RLIMIT_NOFILE, &rl);
}

static void anonymous(void)
{
	for (;;) {
		char *m = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (m == MAP_FAILED)
			return;
		memset(m, 1, 1 << 20);
	}
}

static void tables(void)
{
	for (size_t n = 1ul << 44; n > 1 << 20; n /= 2) {
		volatile char *m = mmap(NULL, n, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (m == MAP_FAILED)
			continue;
		for (size_t i = 0; i < n; i += 1 << 21)
			(void)m[i];
	}
}

static void mappings(void)
{
	for (long i = 0;; i++)
		if (mmap(NULL, 4096, i & 1 ? PROT_READ : PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED)
			break;
	for (;;) {
		if (fork() < 0)
			return;
	}
}

static void pair(int type)
{
	raise_files();
	for (int s[2]; socketpair(AF_UNIX, type, 0, s) == 0;)
		for (int i = 0; i < 1000 && send(s[0], "x", 1, MSG_DONTWAIT) == 1; i++)
			;
}

static void streams(void) { pair(SOCK_STREAM); }
static void messages(void) { pair(SOCK_SEQPACKET); }
static void datagrams(void) { pair(SOCK_DGRAM); }

static void pipes(void)
{
	raise_files();
	for (int p[2]; pipe(p) == 0;)
		write(p[1], "x", 1);
}

static void epolls(void)
{
	raise_files();
	while (epoll_create1(0) >= 0)
		;
}

static void epolls_full(void)
{
	static char buf[1 << 20];
	raise_files();
	int fd = open("/tmp/full", O_CREAT | O_WRONLY, 0600);
	while (write(fd, buf, sizeof buf) > 0)
		;
	close(fd);
	while (epoll_create1(0) >= 0)
		;
}

static void listeners(void)
{
	struct sockaddr_in a = {.sin_family = AF_INET};
	raise_files();
	for (int s; (s = socket(AF_INET, SOCK_STREAM, 0)) >= 0;)
		if (bind(s, (struct sockaddr *)&a, sizeof a) < 0 || listen(s, 4096) < 0)
			return;
}

static void texts(void)
{
	raise_files();
	char c;
	for (int fd; (fd = open("/proc/self/cmdline", O_RDONLY)) >= 0;)
		read(fd, &c, 1);
}

static void names(void)
{
	char name[300];
	for (long i = 0;; i++) {
		snprintf(name, sizeof name, "/tmp/%0240ld.%d", i, getpid());
		int fd = open(name, O_CREAT | O_WRONLY, 0600);
		if (fd < 0)
			return;
		close(fd);
	}
}

static void file(void)
{
	static char buf[1 << 20];
	char name[64];
	for (int i = 0; i < 4; i++) {
		snprintf(name, sizeof name, "/tmp/big.%d.%d", i, getpid());
		int fd = open(name, O_CREAT | O_WRONLY, 0600);
		while (write(fd, buf, sizeof buf) > 0)
			;
		close(fd);
	}
}

// keepers are processes that fill /tmp, each after the one before found no more room. All stay.
static void keepers(void)
{
	for (;;) {
		pid_t pid = fork();
		if (pid == 0) {
			file();
			for (;;)
				raise(SIGSTOP);
		}
		if (pid < 0)
			nap(1);
		else
			waitpid(pid, NULL, WUNTRACED);
	}
}

static void segments(void)
{
	for (;;) {
		int id = shmget(IPC_PRIVATE, 8 << 20, IPC_CREAT | 0600);
		if (id < 0)
			return;
		char *m = shmat(id, NULL, 0);
		if (m == (char *)-1)
			return;
		memset(m, 1, 8 << 20);
		shmdt(m);
	}
}

static void processes(void)
{
	for (;;) {
		pid_t pid = fork();
		if (pid < 0)
			nap(1);
		if (pid == 0)
			for (;;)
				pause();
	}
}

static const struct {
	const char *name;
	void (*take)(void);
	int workers;
} kinds[] = {
	{"anonymous", anonymous, 1}, {"tables", tables, 4}, {"mappings", mappings, 1},
	{"streams", streams, 8}, {"messages", messages, 8}, {"datagrams", datagrams, 8},
	{"pipes", pipes, 8}, {"epolls", epolls, 8}, {"epolls-full", epolls_full, 8},
	{"listeners", listeners, 8}, {"texts", texts, 8}, {"names", names, 2},
	{"file", file, 1}, {"segments", segments, 1}, {"processes", processes, 1},
	{"keepers", keepers, 1},
};

// offend takes memory in a child; when that is killed, the next one does.
static void offend(void (*take)(void), int workers)
{
	setpgid(0, 0);
	become(offender);
	for (int running = 0;;) {
		if (running < workers) {
			pid_t pid = fork();
			if (pid == 0) {
				take();
				for (;;)
					pause();
			}
			if (pid > 0) {
				running++;
				continue;
			}
		}
		int st;
		if (waitpid(-1, &st, running < workers ? WNOHANG : 0) > 0) {
			running--;
			if (WIFSIGNALED(st))
				shared->deaths++;
		}
		nap(1);
	}
}

static void reap(void)
{
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
}

static int by_size(const void *a, const void *b)
{
	long x = *(const long *)a, y = *(const long *)b;
	return (x > y) - (x < y);
}

// clean removes what the offender left, as root does by hand: in a process of its own.
static int clean(void)
{
	int st = -1;
	pid_t pid = fork();
	if (pid == 0) {
		DIR *d = opendir("/tmp");
		for (struct dirent *e; d && (e = readdir(d));)
			if (e->d_name[0] != '.')
				unlinkat(dirfd(d), e->d_name, 0);
		_exit(d == NULL);
	}
	if (pid < 0 || waitpid(pid, &st, 0) != pid || st != 0)
		return 0;
	for (int id = 0; id < 1 << 16; id++)
		shmctl(id, IPC_RMID, NULL);
	return 1;
}

// logged counts the deaths that the kernel's log tells of.
static int logged(void)
{
	char line[1024];
	int n = 0, fd = open("/dev/kmsg", O_RDONLY | O_NONBLOCK);
	for (ssize_t k; (k = read(fd, line, sizeof line - 1)) > 0;) {
		line[k] = 0;
		n += strstr(line, ";Out of memory: Killed process ") && strstr(line, "kB, UID:1000 ");
	}
	close(fd);
	return n;
}

int main(int argc, char **argv)
{
	if (getpid() != 1) {
		fprintf(stderr, "reserve: this is not process 1 of a Hardtack guest\n");
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	mkdir("/tmp", 0777);
	chmod("/tmp", 01777);
	shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int ms = argc > 1 ? atoi(argv[1]) : 1000, bad = 0;
	for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
		if (argc > 2 && strcmp(argv[2], kinds[i].name))
			continue;
		memset((void *)shared, 0, sizeof *shared);
		printf("=== RUN   %s\n", kinds[i].name);
		pid_t good = fork();
		if (good == 0)
			behave();
		nap(300);
		long before = shared->rounds;
		pid_t evil = fork();
		if (evil == 0)
			offend(kinds[i].take, kinds[i].workers);
		nap(ms);
		for (int n = 0; i == 0 && n < 600 && shared->deaths == 0; n++)
			nap(100); // the first kind is to die
		int st = -1, lives = good > 0 && waitpid(good, &st, WNOHANG) == 0;
		shared->stop = 1;
		if (lives)
			waitpid(good, &st, 0);
		for (int n = 0; n < 500 && (kill(-1, SIGKILL) == 0 || errno != ESRCH); n++, nap(10))
			reap();
		reap();
		int cleaned = clean();
		long n = shared->rounds;
		qsort(shared->took, n, sizeof(long), by_size);
		int ok = lives && st == 0 && cleaned && shared->failed == 0 && evil > 0;
		printf("--- %s: %s (failed %ld, rounds %ld+%ld, median %ld us, worst %ld us, deaths %ld, status %x)\n",
		       ok ? "PASS" : "FAIL", kinds[i].name, shared->failed, before, n - before, n ? shared->took[n / 2] : 0,
		       n ? shared->took[n - 1] : 0, shared->deaths, st);
		bad |= !ok;
	}
	int n = logged();
	int silent = n == 0 && argc <= 2; // one kind alone may be stopped by limits
	printf("reserve: %s, the log tells of %d deaths\n", bad || silent ? "FAIL" : "ok", n);
	return bad || silent;
}
