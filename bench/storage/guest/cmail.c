// cmail is CMailbench, the mail server benchmark of Biscuit (Cutler et al.): four servers, and four clients
// beside them. For each message a client forks and executes a helper, which sends
// 1660 bytes to its server over a Unix socket; the server forks and executes a
// delivery agent, which writes the message to a new file in the server's directory.
//
//	cmail DIRECTORY MS [N]    messages a second for MS milliseconds, or of N a client
//
// The agent makes the file under tmp/, syncs it, and renames it to new/; then it
// takes an older message of the same mailbox: renames it to cur/, looks at it and
// removes it. So each message has two forks, executions and renames, and the
// mailboxes stay as they are. It prints `NAME messages rate rate`, or with N
// nanoseconds per message.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { SERVERS = 4, MESSAGE = 1660, KEPT = 8 };

static _Noreturn void die(const char *what)
{
	printf("cmail: %s: %s\n", what, strerror(errno));
	exit(1);
}

static uint64_t now(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static struct sockaddr_un address(int server)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	snprintf(a.sun_path + 1, sizeof a.sun_path - 1, "cmail-%d", server);
	return a;
}

static void name(char *to, const char *dir, long number) { sprintf(to, "%s/%ld", dir, number); }

// agent: descriptor 0 has the message, and the server's directory is the current.
static int agent(long number)
{
	char message[MESSAGE], tmp[64], to[64];
	size_t have = 0;
	while (have < sizeof message) {
		ssize_t n = read(0, message + have, sizeof message - have);
		if (n <= 0)
			die("read");
		have += (size_t)n;
	}
	name(tmp, "tmp", number), name(to, "new", number);
	int fd = open(tmp, O_CREAT | O_EXCL | O_WRONLY, 0600);
	struct stat st;
	if (fd < 0 || write(fd, message, sizeof message) != sizeof message || fstat(fd, &st) < 0 || st.st_size != MESSAGE ||
	    fsync(fd) < 0 || close(fd) < 0 || rename(tmp, to) < 0)
		die("deliver");
	if (number >= KEPT) {
		char old[64], cur[64];
		name(old, "new", number - KEPT), name(cur, "cur", number - KEPT);
		if (rename(old, cur) < 0 || stat(cur, &st) < 0 || st.st_size != MESSAGE || unlink(cur) < 0)
			die("take");
	}
	if (write(0, "k", 1) != 1)
		die("answer");
	return 0;
}

// helper sends one message and waits for the answer.
static int helper(int server)
{
	char message[MESSAGE], answer;
	memset(message, 'm', sizeof message);
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	struct sockaddr_un a = address(server);
	if (fd < 0 || connect(fd, (struct sockaddr *)&a, sizeof a) < 0 || write(fd, message, sizeof message) != sizeof message ||
	    read(fd, &answer, 1) != 1)
		die("send");
	return 0;
}

static pid_t spawn(const char *self, const char *role, long number, int fd)
{
	pid_t pid = fork();
	if (pid < 0)
		die("fork");
	if (pid == 0) {
		char text[32];
		sprintf(text, "%ld", number);
		if (fd >= 0)
			dup2(fd, 0);
		execl(self, self, role, text, (char *)NULL);
		die("exec");
	}
	return pid;
}

static _Noreturn void serve(const char *self, int server, int listener)
{
	char dir[32];
	sprintf(dir, "box%d", server);
	if (chdir(dir) < 0)
		die(dir);
	for (long number = 0;; number++) {
		int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
		if (fd < 0)
			die("accept");
		pid_t pid = spawn(self, "agent", number, fd);
		close(fd);
		int status;
		if (waitpid(pid, &status, 0) < 0 || status)
			die("the agent failed");
	}
}

int main(int argc, char **argv)
{
	if (argc == 3 && strcmp(argv[1], "agent") == 0)
		return agent(atol(argv[2]));
	if (argc == 3 && strcmp(argv[1], "helper") == 0)
		return helper(atoi(argv[2]));
	if (argc < 3)
		return 2;
	const char *self = "/bench/cmail";
	int ms = atoi(argv[2]);
	long each = argc > 3 ? atol(argv[3]) : 0;
	mkdir(argv[1], 0755);
	if (chdir(argv[1]) < 0)
		die(argv[1]);
	pid_t servers[SERVERS];
	for (int s = 0; s < SERVERS; s++) {
		char dir[64];
		const char *sub[] = {"", "/tmp", "/new", "/cur"};
		for (int i = 0; i < 4; i++) {
			sprintf(dir, "box%d%s", s, sub[i]);
			mkdir(dir, 0755);
		}
		int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
		struct sockaddr_un a = address(s);
		if (listener < 0 || bind(listener, (struct sockaddr *)&a, sizeof a) < 0 || listen(listener, 16) < 0)
			die("listen");
		if ((servers[s] = fork()) == 0)
			serve(self, s, listener);
		close(listener);
	}
	volatile long *counts = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	uint64_t start = now();
	pid_t clients[SERVERS];
	for (int c = 0; c < SERVERS; c++)
		if ((clients[c] = fork()) == 0) {
			while (each ? counts[c * 8] < each : now() - start < (uint64_t)ms * 1000000u) {
				int status;
				if (waitpid(spawn(self, "helper", c, -1), &status, 0) < 0 || status)
					die("the helper failed");
				counts[c * 8]++;
			}
			_exit(0);
		}
	int failed = 0, status;
	for (int c = 0; c < SERVERS; c++) {
		waitpid(clients[c], &status, 0);
		failed |= status;
	}
	uint64_t took = now() - start;
	long sum = 0;
	for (int s = 0; s < SERVERS; s++) {
		sum += counts[s * 8];
		kill(servers[s], SIGKILL);
	}
	while (wait(NULL) > 0)
		;
	double figure = each ? (double)took / (double)sum : (double)sum / ((double)took / 1e9);
	if (!failed)
		printf("cmail %ld %.1f %.1f\n", sum, figure, figure);
	return failed != 0;
}
