// net serves the peer at the other end of the network card, the same binary on Linux and
// on Hardtack. A process spins beside the servers (bench/os/guest/disk.h), and the peer
// asks for the counters before and after its loads. Every port has a process of its own,
// which waits in the call that it is named for.
//
//	7000  UDP  'm': the time-stamp counter and the spinner's rounds; 'c': what a round takes
//	7001  UDP  echo
//	7002  UDP  receives; answers the first of every BATCH, so that the peer sends no more than fit
//	7003  UDP  sends BATCH datagrams of as many bytes as the request's first two bytes say
//	7004  TCP  echo
//	7005  TCP  accept, read, write, close
//	7006  TCP  receives; answers when the MiB that a client sends is complete
//	7007  TCP  for each byte received sends a MiB
#define _GNU_SOURCE
#define PROGRAM "net"
#include "../../os/guest/disk.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

enum { BATCH = 32, MIB = 1 << 20 };

static char data[MIB];

static int bound(int type, int port)
{
	int fd = socket(AF_INET, type, 0), on = 1;
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) < 0 || bind(fd, (struct sockaddr *)&a, sizeof a) < 0)
		die("bind");
	if (type == SOCK_STREAM && listen(fd, 128) < 0)
		die("listen");
	return fd;
}

struct sender {
	struct sockaddr_in a;
	socklen_t n;
};

static ssize_t from(int fd, struct sender *s)
{
	s->n = sizeof s->a;
	ssize_t n = recvfrom(fd, data, sizeof data, 0, (struct sockaddr *)&s->a, &s->n);
	if (n < 0)
		die("recvfrom");
	return n;
}

static void to(int fd, const void *what, size_t n, const struct sender *s)
{
	if (sendto(fd, what, n, 0, (const struct sockaddr *)&s->a, s->n) != (ssize_t)n)
		die("sendto");
}

static void control(int fd)
{
	struct sender s;
	while (from(fd, &s) > 0) {
		if (data[0] == 'c') {
			double round = calibrate();
			to(fd, &round, sizeof round, &s);
		} else {
			struct mark m = mark();
			to(fd, &m, sizeof m, &s);
		}
	}
}

static void udp_echo(int fd)
{
	struct sender s;
	for (;;) {
		ssize_t n = from(fd, &s);
		to(fd, data, (size_t)n, &s);
	}
}

static void udp_sink(int fd)
{
	struct sender s;
	for (long i = 0;; i++) {
		from(fd, &s);
		if (i % BATCH == BATCH - 1)
			to(fd, "k", 1, &s);
	}
}

static void udp_source(int fd)
{
	struct sender s;
	while (from(fd, &s) >= 2) {
		size_t n = (size_t)(unsigned char)data[0] << 8 | (unsigned char)data[1];
		for (int i = 0; i < BATCH; i++)
			to(fd, data, n, &s);
	}
}

static int accepted(int listener)
{
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC), on = 1;
	if (fd < 0)
		die("accept");
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	return fd;
}

static void all(int fd, const char *what, size_t n)
{
	while (n > 0) {
		ssize_t done = write(fd, what, n);
		if (done <= 0)
			return;
		what += done, n -= (size_t)done;
	}
}

static void tcp_echo(int listener)
{
	for (;;) {
		int fd = accepted(listener);
		for (ssize_t n; (n = read(fd, data, sizeof data)) > 0;)
			all(fd, data, (size_t)n);
		close(fd);
	}
}

static void tcp_once(int listener)
{
	for (;;) {
		int fd = accepted(listener);
		ssize_t n = read(fd, data, 4096);
		if (n > 0)
			all(fd, data, (size_t)n);
		close(fd);
	}
}

static void tcp_sink(int listener)
{
	for (;;) {
		int fd = accepted(listener);
		long had = 0;
		for (ssize_t n; (n = read(fd, data, 65536)) > 0;)
			if ((had += n) >= MIB) {
				had -= MIB;
				all(fd, "k", 1);
			}
		close(fd);
	}
}

static void tcp_source(int listener)
{
	for (;;) {
		int fd = accepted(listener);
		char request;
		while (read(fd, &request, 1) == 1)
			for (int at = 0; at < MIB; at += 65536)
				all(fd, data + at, 65536);
		close(fd);
	}
}

static const struct {
	int type, port;
	void (*serve)(int fd);
} servers[] = {
	{SOCK_DGRAM, 7001, udp_echo}, {SOCK_DGRAM, 7002, udp_sink}, {SOCK_DGRAM, 7003, udp_source}, {SOCK_STREAM, 7004, tcp_echo},
	{SOCK_STREAM, 7005, tcp_once}, {SOCK_STREAM, 7006, tcp_sink}, {SOCK_STREAM, 7007, tcp_source},
};

int main(void)
{
	signal(SIGPIPE, SIG_IGN);
	memset(data, 'd', sizeof data);
	start_spinner();
	for (size_t i = 0; i < sizeof servers / sizeof servers[0]; i++)
		if (fork() == 0) {
			servers[i].serve(bound(servers[i].type, servers[i].port));
			_exit(1);
		}
	control(bound(SOCK_DGRAM, 7000));
	return 1;
}
