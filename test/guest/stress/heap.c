// A user fills the kernel's heap by what is cheap for him: the kernel must live on, kill
// who holds the memory, and serve others then.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { user = 1000, workers = 40 };

static void nap(int ms)
{
	struct timespec ts = {ms / 1000, ms % 1000 * 1000000L};
	nanosleep(&ts, NULL);
}

// Messages of a byte, which cost the kernel far more than a byte.
static void messages(void)
{
	for (int s[2]; socketpair(AF_UNIX, SOCK_SEQPACKET, 0, s) == 0;)
		for (int i = 0; i < 1000 && send(s[0], "x", 1, MSG_DONTWAIT) == 1; i++)
			;
}

static void datagrams(void)
{
	for (int s[2]; socketpair(AF_UNIX, SOCK_DGRAM, 0, s) == 0;)
		for (int i = 0; i < 1000 && send(s[0], "x", 1, MSG_DONTWAIT) == 1; i++)
			;
}

static void listeners(void)
{
	struct sockaddr_in a = {.sin_family = AF_INET};
	for (int s; (s = socket(AF_INET, SOCK_STREAM, 0)) >= 0;)
		if (bind(s, (struct sockaddr *)&a, sizeof a) < 0 || listen(s, 4096) < 0)
			return;
}

static void epolls(void)
{
	while (epoll_create1(0) >= 0)
		;
}

static const struct {
	const char *name;
	void (*take)(void);
} kinds[] = {
	{"messages", messages},
	{"datagrams", datagrams},
	{"listeners", listeners},
	{"epolls", epolls},
};

// fill leaves no memory to files, as a user may.
static void fill(void)
{
	static char buf[1 << 20];
	int fd = open("/tmp/full", O_CREAT | O_WRONLY, 0600);
	while (write(fd, buf, sizeof buf) > 0)
		;
	close(fd);
}

static void offend(void (*take)(void))
{
	struct rlimit rl = {1 << 20, 1 << 20};
	setrlimit(RLIMIT_NOFILE, &rl);
	setpgid(0, 0);
	if (setgroups(0, NULL) < 0 || setresgid(user, user, user) < 0 || setresuid(user, user, user) < 0)
		_exit(99);
	fill();
	for (int i = 0; i < workers; i++)
		if (fork() == 0) {
			take();
			for (;;)
				pause();
		}
	for (;;)
		pause();
}

// works reports whether root is served.
static int works(void)
{
	int p[2], st = -1;
	char c;
	if (pipe(p) < 0)
		return 0;
	pid_t pid = fork();
	if (pid == 0)
		_exit(write(p[1], "x", 1) == 1 ? 0 : 1);
	int ok = pid > 0 && waitpid(pid, &st, 0) == pid && st == 0 && read(p[0], &c, 1) == 1;
	close(p[0]);
	close(p[1]);
	return ok;
}

int main(int argc, char **argv)
{
	if (getpid() != 1) {
		fprintf(stderr, "heap: this is not process 1 of a Hardtack guest\n");
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	mkdir("/tmp", 0777);
	chmod("/tmp", 01777);
	int failed = 0;
	for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
		if (argc > 1 && strcmp(argv[1], kinds[i].name))
			continue;
		printf("=== RUN   %s\n", kinds[i].name);
		pid_t pid = fork();
		if (pid == 0)
			offend(kinds[i].take);
		long served = 0, refused = 0;
		time_t end = time(NULL) + 10; // calls wait for memory; they are not refused
		for (int n = 0; n < 50 && time(NULL) < end; n++) {
			*(works() ? &served : &refused) += 1;
			nap(10);
		}
		for (int n = 0; n < 100 && (kill(-1, SIGKILL) == 0 || errno != ESRCH); n++) {
			while (waitpid(-1, NULL, WNOHANG) > 0)
				;
			nap(20);
		}
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
		unlink("/tmp/full");
		int ok = 0;
		for (int n = 0; n < 100 && !ok; n++, nap(20))
			ok = works();
		ok &= refused == 0;
		printf("--- %s: %s (root was served %ld times, refused %ld times)\n", ok ? "PASS" : "FAIL", kinds[i].name, served, refused);
		failed |= !ok;
	}
	printf("heap: %s\n", failed ? "FAIL" : "ok");
	return failed;
}
