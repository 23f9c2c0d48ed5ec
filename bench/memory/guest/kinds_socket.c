// Offenders that use sockets.
#include "memory.h"
#include <arpa/inet.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <sys/un.h>

static struct sockaddr_in loopback(void)
{
	return (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

static void sockets(void)
{
	moreDescriptors();
	while (socket(AF_INET, SOCK_DGRAM, 0) >= 0)
		;
}

// pairsOf makes pairs of sockets with so many messages of a byte in each.
static void pairsOf(int type, int messages)
{
	moreDescriptors();
	for (int s[2]; socketpair(AF_UNIX, type, 0, s) == 0;)
		for (int i = 0; i < messages && send(s[0], "x", 1, MSG_DONTWAIT) == 1; i++)
			;
}

static void streampairs(void) { pairsOf(SOCK_STREAM, 1); }
static void seqpackets(void) { pairsOf(SOCK_SEQPACKET, 10000); }
static void unixdgrams(void) { pairsOf(SOCK_DGRAM, 10000); }

static void listeners(void)
{
	struct sockaddr_in a = loopback();
	moreDescriptors();
	for (int s; (s = socket(AF_INET, SOCK_STREAM, 0)) >= 0;)
		if (bind(s, (struct sockaddr *)&a, sizeof a) < 0 || listen(s, 4096) < 0)
			return;
}

// Connections that nobody accepts.
static void backlogs(void)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	moreDescriptors();
	for (int n = 0;; n++) {
		int c = 0, s = socket(AF_UNIX, SOCK_STREAM, 0);
		snprintf(a.sun_path + 1, 32, "%d.%d", getpid(), n);
		if (s < 0 || bind(s, (struct sockaddr *)&a, sizeof a) < 0 || listen(s, 4096) < 0)
			return;
		for (int i = 0; i < 4000; i++)
			if ((c = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0)) < 0 || connect(c, (struct sockaddr *)&a, sizeof a) < 0)
				break;
		if (c < 0)
			return;
	}
}

static void udps(void)
{
	struct sockaddr_in a = loopback();
	moreDescriptors();
	for (int s; (s = socket(AF_INET, SOCK_DGRAM, 0)) >= 0;) {
		socklen_t n = sizeof a;
		a.sin_port = 0;
		if (bind(s, (struct sockaddr *)&a, sizeof a) < 0 || getsockname(s, (struct sockaddr *)&a, &n) < 0)
			return;
		for (int i = 0; i < 1000; i++)
			if (sendto(s, "x", 1, MSG_DONTWAIT, (struct sockaddr *)&a, sizeof a) < 0)
				break;
	}
}

// TCP connections with bytes that nobody reads.
static void tcps(void)
{
	static char buf[16384];
	struct sockaddr_in a = loopback();
	socklen_t n = sizeof a;
	moreDescriptors();
	int l = socket(AF_INET, SOCK_STREAM, 0);
	if (l < 0 || bind(l, (struct sockaddr *)&a, sizeof a) < 0 || listen(l, 100) < 0 || getsockname(l, (struct sockaddr *)&a, &n) < 0)
		return;
	for (int s; (s = socket(AF_INET, SOCK_STREAM, 0)) >= 0;) {
		if (connect(s, (struct sockaddr *)&a, sizeof a) < 0 || accept(l, NULL, NULL) < 0)
			return;
		while (send(s, buf, sizeof buf, MSG_DONTWAIT) > 0)
			;
	}
}

static void netlinks(void)
{
	struct {
		struct nlmsghdr h;
		struct rtgenmsg g;
	} ask = {{sizeof ask, RTM_GETLINK, NLM_F_REQUEST | NLM_F_DUMP, 1, 0}, {AF_UNSPEC}};
	moreDescriptors();
	for (int s; (s = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE)) >= 0;)
		for (int i = 0; i < 100 && send(s, &ask, sizeof ask, MSG_DONTWAIT) > 0; i++)
			;
}

static int sendOne(int to, int fd)
{
	char space[CMSG_SPACE(sizeof fd)] = {0}, c = 'x';
	struct iovec iov = {&c, 1};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof space};
	struct cmsghdr *h = CMSG_FIRSTHDR(&m);
	h->cmsg_level = SOL_SOCKET;
	h->cmsg_type = SCM_RIGHTS;
	h->cmsg_len = CMSG_LEN(sizeof fd);
	memcpy(CMSG_DATA(h), &fd, sizeof fd);
	return sendmsg(to, &m, MSG_DONTWAIT);
}

// Descriptors that are in flight only.
static void inflight(void)
{
	moreDescriptors();
	for (int s[2]; socketpair(AF_UNIX, SOCK_STREAM, 0, s) == 0;)
		for (int i = 0; i < 200; i++) {
			int fd = socket(AF_UNIX, SOCK_STREAM, 0);
			if (fd < 0)
				return;
			int n = sendOne(s[0], fd);
			close(fd);
			if (n < 0)
				break;
		}
}

// Pairs that hold each other and no process holds.
static void cycles(void)
{
	moreDescriptors();
	for (int s[2]; socketpair(AF_UNIX, SOCK_STREAM, 0, s) == 0;) {
		if (sendOne(s[0], s[0]) < 0 || sendOne(s[1], s[1]) < 0)
			nap(1);
		close(s[0]);
		close(s[1]);
	}
}

const struct kind socketKinds[] = {
	{"sockets", sockets},
	{"streampairs", streampairs},
	{"seqpackets", seqpackets},
	{"unixdgrams", unixdgrams},
	{"listeners", listeners},
	{"backlogs", backlogs},
	{"udps", udps},
	{"tcps", tcps},
	{"netlinks", netlinks},
	{"inflight", inflight},
	{"cycles", cycles},
	{NULL, NULL},
};
