// The well-behaved program: rounds of calls that hold nothing when a round is over.
#include "memory.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>

static void failed(const char *call)
{
	int error = errno;
	for (struct failure *f = shared->failures; f < shared->failures + maxFailures; f++) {
		if (f->count == 0) {
			strncpy(f->call, call, sizeof f->call - 1);
			f->error = error;
		}
		if (f->error == error && strcmp(f->call, call) == 0) {
			f->count++;
			return;
		}
	}
}

// pass sends a byte through a pair of descriptors and closes them.
static void pass(const char *call, int from, int to)
{
	char c = 'x';
	if (write(from, &c, 1) != 1 || read(to, &c, 1) != 1)
		failed(call);
	close(from);
	close(to);
}

static void pipes(void)
{
	int p[2];
	if (pipe(p) < 0)
		failed("pipe");
	else
		pass("pipe write", p[1], p[0]);
}

static void pairs(void)
{
	int s[2];
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, s) < 0)
		failed("socketpair");
	else
		pass("socket write", s[0], s[1]);
}

static void files(const char *name)
{
	static char buf[4096];
	int fd = open(name, O_CREAT | O_RDWR, 0600);
	if (fd < 0) {
		failed("open");
		return;
	}
	errno = 0;
	if (write(fd, buf, sizeof buf) != sizeof buf)
		failed("write");
	else if (pread(fd, buf, sizeof buf, 0) != sizeof buf)
		failed("pread");
	close(fd);
	if (unlink(name) < 0)
		failed("unlink");
}

static void forks(void)
{
	int st = 0;
	pid_t pid = fork();
	if (pid == 0)
		_exit(0);
	if (pid < 0) {
		failed("fork");
		return;
	}
	errno = 0;
	if (waitpid(pid, &st, 0) != pid)
		failed("waitpid");
	else if (st != 0)
		failed("child");
}

static void datagrams(void)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t n = sizeof a;
	char c = 'x';
	int s = socket(AF_INET, SOCK_DGRAM, 0);
	if (s < 0) {
		failed("socket");
		return;
	}
	struct pollfd p = {.fd = s, .events = POLLIN};
	if (bind(s, (struct sockaddr *)&a, sizeof a) < 0 || getsockname(s, (struct sockaddr *)&a, &n) < 0)
		failed("bind");
	else if (sendto(s, &c, 1, 0, (struct sockaddr *)&a, n) != 1)
		failed("sendto");
	else if (errno = 0, poll(&p, 1, 2000) != 1 || recv(s, &c, 1, 0) != 1)
		failed("recv");
	close(s);
}

static struct slow slow; // the longest step of this round

static void step(const char *name, void (*f)(void))
{
	int64_t begin = now();
	f();
	uint32_t micros = now() - begin;
	if (micros >= slow.micros) {
		slow.micros = micros;
		slow.at = begin;
		strncpy(slow.step, name, sizeof slow.step - 1);
	}
}

static char name[32];

static void file(void) { files(name); }

void behave(int number)
{
	snprintf(name, sizeof name, "/tmp/good.%d", number);
	while (!shared->stop) {
		int64_t begin = now();
		shared->running = begin;
		slow.micros = 0;
		step("pipe", pipes);
		step("file", file);
		step("fork", forks);
		step("socketpair", pairs);
		step("datagram", datagrams);
		int n = shared->rounds;
		slow.round = now() - begin;
		if (n < maxRounds) {
			shared->micros[n] = slow.round;
			shared->rounds = n + 1;
		}
		if (slow.round > shared->slow.round)
			shared->slow = slow;
		shared->running = 0;
	}
	_exit(0);
}
