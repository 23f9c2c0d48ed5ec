// Rows of two processes that talk: pipe, unix socket, TCP on the loopback. One
// unit is a round trip of five bytes.
#define _GNU_SOURCE
#include "osbench.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <signal.h>
#include <time.h>

enum { message = 5 };

static void send_all(int fd)
{
	static const char m[message] = "hello";
	if (write(fd, m, message) != message)
		die("write");
}

// recv_all reports whether a whole message came; false is end of file.
static int recv_all(int fd)
{
	char m[message];
	for (int got = 0; got < message;) {
		ssize_t k = read(fd, m + got, (size_t)(message - got));
		check(k, "read");
		if (k == 0)
			return 0;
		got += (int)k;
	}
	return 1;
}

// echo answers until its input ends.
static _Noreturn void echo(int in, int out)
{
	while (recv_all(in))
		send_all(out);
	_exit(0);
}

static void ping(int in, int out, long n)
{
	send_all(out), recv_all(in);
	start();
	for (long i = 0; i < n; i++) {
		send_all(out);
		recv_all(in);
	}
	stop();
}

static void pipe_row(long n)
{
	int to[2], from[2];
	check(pipe(to), "pipe");
	check(pipe(from), "pipe");
	pid_t pid = fork();
	check(pid, "fork");
	if (pid == 0) {
		close(to[1]);
		echo(to[0], from[1]);
	}
	ping(from[0], to[1], n);
	close(to[0]), close(to[1]), close(from[0]), close(from[1]);
	waitpid(pid, NULL, 0);
}

static void unix_row(long n)
{
	int s[2];
	check(socketpair(AF_UNIX, SOCK_STREAM, 0, s), "socketpair");
	pid_t pid = fork();
	check(pid, "fork");
	if (pid == 0) {
		close(s[0]);
		echo(s[1], s[1]);
	}
	close(s[1]);
	ping(s[0], s[0], n);
	close(s[0]);
	waitpid(pid, NULL, 0);
}

static struct sockaddr_in loopback(int port)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return a;
}

int tcp_listen(int port)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;
	check(fd, "socket");
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
	struct sockaddr_in a = loopback(port);
	check(bind(fd, (struct sockaddr *)&a, sizeof a), "bind");
	check(listen(fd, 16), "listen");
	return fd;
}

int tcp_connect(const char *addr, int port)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;
	check(fd, "socket");
	struct sockaddr_in a = loopback(port);
	if (addr)
		inet_pton(AF_INET, addr, &a.sin_addr);
	if (connect(fd, (struct sockaddr *)&a, sizeof a) < 0) {
		close(fd);
		return -1;
	}
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	return fd;
}

void wait_port(int port, int seconds)
{
	for (int i = 0; i < seconds * 20; i++) {
		int fd = tcp_connect(NULL, port);
		if (fd >= 0) {
			close(fd);
			return;
		}
		struct timespec ts = {0, 50000000};
		nanosleep(&ts, NULL);
	}
	die("the server does not answer");
}

static void tcp_row(long n)
{
	int l = tcp_listen(7007);
	pid_t pid = fork();
	check(pid, "fork");
	if (pid == 0) {
		int c = accept(l, NULL, NULL), one = 1;
		check(c, "accept");
		setsockopt(c, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
		echo(c, c);
	}
	int c = tcp_connect(NULL, 7007);
	check(c, "connect");
	close(l);
	ping(c, c, n);
	close(c);
	waitpid(pid, NULL, 0);
}

const bench ipc_benches[] = {
	{"pipe", pipe_row, 1},
	{"unix", unix_row, 1},
	{"tcp", tcp_row, 1},
	{NULL, NULL, 0},
};
