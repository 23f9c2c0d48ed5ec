// agent makes the socket calls that test/tcp asks for, the same binary on Linux and on
// Hardtack. A request is a datagram to port 7000, one line of words; the answer is one
// too: a result, or the name of an error. A word S is a socket's number here, 0 to 63.
//
//	listen S PORT BACKLOG     dial S PORT     accept S LISTENER   connected S
//	write S BYTES             oob S           read S BYTES        readoob S
//	shutdown S HOW            close S         opt S LEVEL NAME VALUE
//	state S                   queued S        poll S              sysctl PATH VALUE
//	reset                     free (memory in KiB)     file PATH (its begin)  lines PATH (how many)
//
// Calls that wait do so for three seconds at most.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum { SOCKETS = 64, WAIT = 3000, CONTROL = 7000, ECHO = 7001 };

static int sockets[SOCKETS];
static char answer[512], data[1 << 20];

static void say(long n)
{
	if (n < 0)
		snprintf(answer, sizeof answer, "%s", strerrorname_np(errno));
	else
		snprintf(answer, sizeof answer, "%ld", n);
}

static struct sockaddr_in address(const char *ip, int port)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	inet_pton(AF_INET, ip, &a.sin_addr);
	return a;
}

static int on(int fd, int events)
{
	struct pollfd p = {.fd = fd, .events = (short)events};
	return poll(&p, 1, WAIT);
}

// fresh is a socket without blocking in slot S.
static int fresh(int s)
{
	int one = 1;
	if (sockets[s] >= 0)
		close(sockets[s]);
	sockets[s] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	setsockopt(sockets[s], SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
	return sockets[s];
}

static void end(int s)
{
	struct linger hard = {1, 0};
	if (sockets[s] < 0)
		return;
	setsockopt(sockets[s], SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
	close(sockets[s]);
	sockets[s] = -1;
}

static int pattern(int n)
{
	for (int i = 0; i < n; i++)
		data[i] = (char)('a' + i % 26);
	return n;
}

static void listening(int s, int port, int backlog)
{
	struct sockaddr_in a = address("0.0.0.0", port);
	int fd = fresh(s);
	say(bind(fd, (struct sockaddr *)&a, sizeof a) < 0 ? -1 : listen(fd, backlog));
}

static void dial(int s, int port)
{
	struct sockaddr_in a = address("10.0.2.2", port);
	say(connect(fresh(s), (struct sockaddr *)&a, sizeof a));
}

static void connected(int fd)
{
	int err = 0;
	socklen_t n = sizeof err;
	if (on(fd, POLLOUT) == 0)
		errno = ETIMEDOUT, err = -1;
	else if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &n) == 0 && err != 0)
		errno = err, err = -1;
	say(err);
}

static void accepted(int s, int listener)
{
	on(sockets[listener], POLLIN);
	int fd = accept4(sockets[listener], NULL, NULL, SOCK_NONBLOCK);
	if (fd >= 0)
		sockets[s] = fd;
	say(fd < 0 ? -1 : 0);
}

static void readable(int fd, int n)
{
	on(fd, POLLIN);
	ssize_t got = read(fd, data, (size_t)n < sizeof data ? (size_t)n : sizeof data);
	say(got);
	if (got > 0 && got <= 32)
		snprintf(answer, sizeof answer, "%zd %.*s", got, (int)got, data);
}

static void urgent(int fd)
{
	char c = 0;
	on(fd, POLLPRI);
	if (recv(fd, &c, 1, MSG_OOB) < 0)
		say(-1);
	else
		snprintf(answer, sizeof answer, "%c mark %d", c, sockatmark(fd));
}

static void state(int fd)
{
	static const char *names[] = {"-", "ESTABLISHED", "SYN_SENT", "SYN_RECV", "FIN_WAIT1", "FIN_WAIT2", "TIME_WAIT", "CLOSE", "CLOSE_WAIT", "LAST_ACK", "LISTEN", "CLOSING"};
	struct tcp_info i;
	socklen_t n = sizeof i;
	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &i, &n) < 0)
		say(-1);
	else
		snprintf(answer, sizeof answer, "%s%s%s%s%s", i.tcpi_state < 12 ? names[i.tcpi_state] : "?",
			i.tcpi_options & TCPI_OPT_TIMESTAMPS ? " ts" : "", i.tcpi_options & TCPI_OPT_SACK ? " sack" : "",
			i.tcpi_options & TCPI_OPT_WSCALE ? " ws" : "", i.tcpi_options & TCPI_OPT_ECN ? " ecn" : "");
}

static void queued(int fd)
{
	int in = -1, out = -1;
	ioctl(fd, SIOCINQ, &in);
	ioctl(fd, SIOCOUTQ, &out);
	snprintf(answer, sizeof answer, "in %d out %d", in, out);
}

static void events(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN | POLLOUT | POLLPRI | POLLRDHUP};
	poll(&p, 1, 0);
	snprintf(answer, sizeof answer, "%s%s%s%s%s%s", p.revents & POLLIN ? "in " : "", p.revents & POLLOUT ? "out " : "",
		p.revents & POLLPRI ? "pri " : "", p.revents & POLLRDHUP ? "rdhup " : "", p.revents & POLLHUP ? "hup " : "", p.revents & POLLERR ? "err " : "");
}

static void control(const char *path, const char *value)
{
	int fd = open(path, O_WRONLY);
	say(fd < 0 ? -1 : write(fd, value, strlen(value)) < 0 ? -1 : 0);
	if (fd >= 0)
		close(fd);
}

static void memory(void)
{
	char line[128];
	FILE *f = fopen("/proc/meminfo", "r");
	long kib = 0;
	while (f && fgets(line, sizeof line, f))
		if (sscanf(line, "MemFree: %ld", &kib) == 1)
			break;
	if (f)
		fclose(f);
	say(kib);
}

static void file(const char *path, int count)
{
	FILE *f = fopen(path, "r");
	long n = 0;
	int c;
	if (f == NULL) {
		say(-1);
		return;
	}
	if (count) {
		while ((c = fgetc(f)) != EOF)
			n += c == '\n';
		say(n);
	} else
		answer[fread(answer, 1, sizeof answer - 1, f)] = 0;
	fclose(f);
}

static void do_line(char *line)
{
	char verb[32] = "", b[128] = "", c[128] = "";
	int s = 0;
	sscanf(line, "%31s %127s %127s", verb, b, c);
	if (strcmp(verb, "sysctl") == 0) {
		control(b, c);
		return;
	}
	if (strcmp(verb, "file") == 0 || strcmp(verb, "lines") == 0) {
		file(b, verb[0] == 'l');
		return;
	}
	s = atoi(b) & (SOCKETS - 1);
	int fd = sockets[s], n = atoi(c);
	if (strcmp(verb, "listen") == 0) {
		int port = 0, backlog = 16;
		sscanf(line, "%*s %*d %d %d", &port, &backlog);
		listening(s, port, backlog);
	} else if (strcmp(verb, "dial") == 0)
		dial(s, n);
	else if (strcmp(verb, "accept") == 0)
		accepted(s, n & (SOCKETS - 1));
	else if (strcmp(verb, "connected") == 0)
		connected(fd);
	else if (strcmp(verb, "write") == 0)
		say(write(fd, data, (size_t)pattern(n)));
	else if (strcmp(verb, "oob") == 0)
		say(send(fd, "!", 1, MSG_OOB));
	else if (strcmp(verb, "read") == 0)
		readable(fd, n);
	else if (strcmp(verb, "readoob") == 0)
		urgent(fd);
	else if (strcmp(verb, "shutdown") == 0)
		say(shutdown(fd, n));
	else if (strcmp(verb, "close") == 0) {
		say(close(fd));
		sockets[s] = -1;
	} else if (strcmp(verb, "opt") == 0) {
		int level = 0, name = 0, value[2] = {0};
		int words = sscanf(line, "%*s %*d %d %d %d %d", &level, &name, &value[0], &value[1]);
		say(setsockopt(fd, level, name, value, words == 4 ? sizeof value : sizeof value[0]));
	} else if (strcmp(verb, "state") == 0)
		state(fd);
	else if (strcmp(verb, "queued") == 0)
		queued(fd);
	else if (strcmp(verb, "poll") == 0)
		events(fd);
	else if (strcmp(verb, "reset") == 0) {
		for (s = 0; s < SOCKETS; s++)
			end(s);
		say(0);
	} else if (strcmp(verb, "free") == 0)
		memory();
	else
		snprintf(answer, sizeof answer, "no verb %s", verb);
}

// echo serves any number of connections at port 7001: what comes goes back.
static void echo(void)
{
	struct sockaddr_in a = address("0.0.0.0", ECHO);
	int l = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), ep = epoll_create1(0);
	struct epoll_event e = {.events = EPOLLIN, .data.fd = l}, got[64];
	if (bind(l, (struct sockaddr *)&a, sizeof a) < 0 || listen(l, 4096) < 0 || epoll_ctl(ep, EPOLL_CTL_ADD, l, &e) < 0)
		_exit(1);
	for (;;) {
		int n = epoll_wait(ep, got, 64, -1);
		for (int i = 0; i < n; i++) {
			int fd = got[i].data.fd;
			if (fd == l) {
				if ((fd = accept4(l, NULL, NULL, 0)) < 0)
					continue;
				e.data.fd = fd;
				epoll_ctl(ep, EPOLL_CTL_ADD, fd, &e);
				continue;
			}
			ssize_t size = read(fd, data, 65536);
			for (ssize_t at = 0, done; at < size; at += done)
				if ((done = write(fd, data + at, (size_t)(size - at))) <= 0)
					break;
			if (size <= 0)
				close(fd);
		}
	}
}

int main(void)
{
	struct rlimit many = {200000, 200000};
	signal(SIGPIPE, SIG_IGN);
	setrlimit(RLIMIT_NOFILE, &many);
	memset(sockets, -1, sizeof sockets);
	if (fork() == 0)
		echo();
	struct sockaddr_in a = address("0.0.0.0", CONTROL), who;
	int u = socket(AF_INET, SOCK_DGRAM, 0);
	if (bind(u, (struct sockaddr *)&a, sizeof a) < 0) {
		perror("agent: bind");
		return 1;
	}
	for (;;) {
		char line[512];
		socklen_t n = sizeof who;
		ssize_t size = recvfrom(u, line, sizeof line - 1, 0, (struct sockaddr *)&who, &n);
		if (size < 0)
			continue;
		line[size] = 0;
		answer[0] = 0;
		do_line(line);
		sendto(u, answer, strlen(answer), 0, (struct sockaddr *)&who, n);
	}
}
