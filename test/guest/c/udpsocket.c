// Program udpsocket tests sockets of UDP: addresses of both families, ancillary
// data, errors of the network, and the states that poll shows.
#include "gt.h"

#include <arpa/inet.h>
#include <linux/errqueue.h>
#include <linux/icmp.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <sys/socket.h>

static struct sockaddr_in four(unsigned ip, int port) { return (struct sockaddr_in){AF_INET, (in_port_t)port, {htonl(ip)}}; }

static struct sockaddr_in6 six(const char *ip, int port)
{
	struct sockaddr_in6 a = {AF_INET6, (in_port_t)port};
	inet_pton(AF_INET6, ip, &a.sin6_addr);
	return a;
}

static int udp(int family) { alarm(20); return must(socket(family, SOCK_DGRAM, 0), "socket"); }

static int port_of(int fd)
{
	struct sockaddr_in6 a;
	socklen_t len = sizeof a;
	getsockname(fd, (void *)&a, &len);
	return a.sin6_port;
}

static const char *text_of(const void *addr, socklen_t len)
{
	static char text[64];
	const struct sockaddr *a = addr;
	if (len == 0)
		return "none";
	if (a->sa_family == AF_INET)
		inet_ntop(AF_INET, &((struct sockaddr_in *)addr)->sin_addr, text, sizeof text);
	else if (a->sa_family == AF_INET6)
		inet_ntop(AF_INET6, &((struct sockaddr_in6 *)addr)->sin6_addr, text, sizeof text);
	else
		sprintf(text, "family %d", a->sa_family);
	return text;
}

static void set(int fd, int level, int name, int v)
{
	if (setsockopt(fd, level, name, &v, sizeof v) < 0)
		say("setsockopt %d %d: %s", level, name, name_of(errno));
}

static void names(int fd)
{
	struct sockaddr_in6 a;
	socklen_t len = sizeof a;
	if (getsockname(fd, (void *)&a, &len) == 0)
		say("  own %s%s", text_of(&a, len), a.sin6_port ? "" : " port 0");
	len = sizeof a;
	if (getpeername(fd, (void *)&a, &len) == 0)
		say("  peer %s", text_of(&a, len));
	else
		say("  peer %s", name_of(errno));
}

// receive prints a message and what comes with it.
static void receive(const char *what, int fd, int flags)
{
	char buf[64], control[512];
	struct sockaddr_storage from;
	struct iovec v = {buf, sizeof buf};
	struct msghdr m = {&from, sizeof from, &v, 1, control, sizeof control, 0};
	struct pollfd p = {fd, POLLIN};
	poll(&p, 1, 1000);
	ssize_t n = recvmsg(fd, &m, flags | MSG_DONTWAIT);
	if (n < 0) {
		say("%s: %s", what, name_of(errno));
		return;
	}
	say("%s: %zd %.*s, flags %#x, from %s", what, n, (int)n, buf, m.msg_flags, text_of(&from, m.msg_namelen));
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c)) {
		unsigned char *d = CMSG_DATA(c);
		size_t len = c->cmsg_len - CMSG_LEN(0);
		char line[200];
		int k = sprintf(line, "  level %d type %d length %zu:", c->cmsg_level, c->cmsg_type, len);
		if (c->cmsg_level == SOL_SOCKET) {
			struct timespec now;
			clock_gettime(CLOCK_REALTIME, &now);
			long sec;
			memcpy(&sec, d, sizeof sec);
			k += sprintf(line + k, " recent %d", now.tv_sec - sec < 10);
		} else if (c->cmsg_type == IPV6_ORIGDSTADDR || (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_ORIGDSTADDR)) {
			k += sprintf(line + k, " %s", text_of(d, (socklen_t)len));
		} else if ((c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_RECVERR) || (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_RECVERR)) {
			struct sock_extended_err *e = (void *)d;
			k += sprintf(line + k, " %s origin %d type %d code %d info %u data %u, offender %s", name_of((int)e->ee_errno), e->ee_origin,
				e->ee_type, e->ee_code, e->ee_info, e->ee_data, text_of(SO_EE_OFFENDER(e), 16));
		} else {
			for (size_t i = 0; i < len; i++)
				k += sprintf(line + k, " %02x", d[i]);
		}
		say("%s", line);
	}
}

TEST(families, "a socket of IPv6 and addresses of IPv4")
{
	int b = udp(AF_INET);
	struct sockaddr_in to = four(INADDR_LOOPBACK, 0);
	bind(b, (void *)&to, sizeof to);
	to.sin_port = (in_port_t)port_of(b);
	struct sockaddr_in6 mapped = six("::ffff:127.0.0.1", to.sin_port), any6 = six("::", to.sin_port);
	int a = udp(AF_INET6);
	err("connect to IPv4", connect(a, (void *)&to, sizeof to));
	names(a);
	num("send", send(a, "one", 3, 0));
	receive("got", b, 0);
	int c = udp(AF_INET6);
	err("connect to mapped", connect(c, (void *)&mapped, sizeof mapped));
	names(c);
	num("send", send(c, "two", 3, 0));
	receive("got", b, 0);
	num("sendto", sendto(c, "three", 5, 0, (void *)&mapped, sizeof mapped));
	receive("got", b, 0);
	err("connect to ::", connect(c, (void *)&any6, sizeof any6));
	names(c);
	err("connect to nobody", connect(c, &(struct sockaddr){AF_UNSPEC}, sizeof(struct sockaddr)));
	names(c);
	num("send", send(c, "x", 1, 0));
	int d = udp(AF_INET6);
	bind(d, (void *)&(struct sockaddr_in6){AF_INET6}, sizeof mapped);
	to.sin_port = (in_port_t)port_of(d);
	int e = udp(AF_INET);
	connect(e, (void *)&to, sizeof to);
	send(e, "four", 4, 0);
	receive("IPv4 at IPv6", d, 0);
	int f = udp(AF_INET);
	struct sockaddr_in any = four(INADDR_ANY, to.sin_port);
	err("connect to 0.0.0.0", connect(f, (void *)&any, sizeof any));
	names(f);
	num("send", send(f, "five", 4, 0));
	receive("IPv4 at IPv6", d, 0);
	err("short", connect(f, (void *)&any, 8));
	err("wrong family", connect(f, (void *)&mapped, sizeof mapped));
}

static void cmsgs(int family)
{
	int b = udp(family), a = udp(family);
	struct sockaddr_in to4 = four(INADDR_LOOPBACK, 0);
	struct sockaddr_in6 to6 = six("::1", 0);
	void *to = family == AF_INET ? (void *)&to4 : (void *)&to6;
	socklen_t len = family == AF_INET ? sizeof to4 : sizeof to6;
	must(bind(b, to, len), "bind");
	to4.sin_port = to6.sin6_port = (in_port_t)port_of(b);
	connect(a, to, len);
	static const struct { const char *name; int level, option; } options[] = {
		{"IP_PKTINFO", IPPROTO_IP, IP_PKTINFO}, {"IP_RECVTTL", IPPROTO_IP, IP_RECVTTL}, {"IP_RECVTOS", IPPROTO_IP, IP_RECVTOS},
		{"IP_RECVORIGDSTADDR", IPPROTO_IP, IP_RECVORIGDSTADDR},
		{"IPV6_RECVPKTINFO", IPPROTO_IPV6, IPV6_RECVPKTINFO}, {"IPV6_RECVHOPLIMIT", IPPROTO_IPV6, IPV6_RECVHOPLIMIT},
		{"IPV6_RECVTCLASS", IPPROTO_IPV6, IPV6_RECVTCLASS}, {"IPV6_RECVORIGDSTADDR", IPPROTO_IPV6, IPV6_RECVORIGDSTADDR},
		{"SO_TIMESTAMP", SOL_SOCKET, SO_TIMESTAMP}, {"SO_TIMESTAMPNS", SOL_SOCKET, SO_TIMESTAMPNS},
		{"SO_TIMESTAMP_NEW", SOL_SOCKET, 63}, {"SO_TIMESTAMPNS_NEW", SOL_SOCKET, 64},
	};
	for (unsigned i = 0; i < sizeof options / sizeof *options; i++) {
		int one = 1, none = 0;
		if (setsockopt(b, options[i].level, options[i].option, &one, sizeof one) < 0)
			continue;
		send(a, "x", 1, 0);
		receive(options[i].name, b, 0);
		setsockopt(b, options[i].level, options[i].option, &none, sizeof none);
	}
	set(a, IPPROTO_IP, IP_TOS, 0x10);
	set(a, IPPROTO_IP, IP_TTL, 7);
	set(b, IPPROTO_IP, IP_RECVTTL, 1);
	set(b, IPPROTO_IP, IP_RECVTOS, 1);
	if (family == AF_INET6) {
		set(a, IPPROTO_IPV6, IPV6_TCLASS, 0x20);
		set(a, IPPROTO_IPV6, IPV6_UNICAST_HOPS, 9);
		set(b, IPPROTO_IPV6, IPV6_RECVHOPLIMIT, 1);
		set(b, IPPROTO_IPV6, IPV6_RECVTCLASS, 1);
	}
	send(a, "set", 3, 0);
	receive("TTL and TOS", b, 0);
	send(a, "abcdef", 6, 0);
	char two[2];
	num("MSG_TRUNC", recv(b, two, 2, MSG_TRUNC | MSG_PEEK));
	num("cut", recv(b, two, 2, 0));
	send(a, NULL, 0, 0);
	receive("nothing", b, 0);
}

TEST(cmsgs4, "what comes with a datagram of IPv4") { cmsgs(AF_INET); }
TEST(cmsgs6, "what comes with a datagram of IPv6") { cmsgs(AF_INET6); }

TEST(mixed, "what comes with a datagram of IPv4 at a socket of IPv6")
{
	int b = udp(AF_INET6), a = udp(AF_INET);
	bind(b, (void *)&(struct sockaddr_in6){AF_INET6}, sizeof(struct sockaddr_in6));
	struct sockaddr_in to = four(INADDR_LOOPBACK, port_of(b));
	connect(a, (void *)&to, sizeof to);
	set(b, IPPROTO_IPV6, IPV6_RECVPKTINFO, 1);
	send(a, "x", 1, 0);
	receive("IPV6_RECVPKTINFO", b, 0);
	set(b, IPPROTO_IPV6, IPV6_RECVPKTINFO, 0);
	set(b, IPPROTO_IP, IP_PKTINFO, 1);
	send(a, "x", 1, 0);
	receive("IP_PKTINFO", b, 0);
	set(b, IPPROTO_IP, IP_PKTINFO, 0);
	set(b, IPPROTO_IP, IP_RECVTTL, 1);
	set(b, IPPROTO_IP, IP_RECVTOS, 1);
	set(b, IPPROTO_IPV6, IPV6_RECVHOPLIMIT, 1);
	set(b, IPPROTO_IPV6, IPV6_RECVTCLASS, 1);
	send(a, "x", 1, 0);
	receive("TTL and TOS", b, 0);
}

static int unreached(int family, int *fd)
{
	int spare = udp(family), port;
	struct sockaddr_in to4 = four(INADDR_LOOPBACK, 0);
	struct sockaddr_in6 to6 = six("::1", 0);
	void *to = family == AF_INET ? (void *)&to4 : (void *)&to6;
	socklen_t len = family == AF_INET ? sizeof to4 : sizeof to6;
	bind(spare, to, len);
	port = port_of(spare);
	close(spare);
	to4.sin_port = to6.sin6_port = (in_port_t)port;
	*fd = udp(family);
	connect(*fd, to, len);
	return port;
}

static void ready(const char *what, int fd)
{
	struct pollfd p = {fd, POLLIN | POLLOUT | POLLPRI | POLLRDHUP};
	poll(&p, 1, 0);
	int e = -1;
	socklen_t len = sizeof e;
	say("%s: poll %#x", what, p.revents);
	(void)e, (void)len;
}

static void so_error(int fd)
{
	int e = -1;
	socklen_t len = sizeof e;
	getsockopt(fd, SOL_SOCKET, SO_ERROR, &e, &len);
	say("SO_ERROR %s", name_of(e));
}

TEST(refused, "errors of the network")
{
	for (int family = AF_INET; family <= AF_INET6; family += AF_INET6 - AF_INET) {
		int a;
		unreached(family, &a);
		num("send", send(a, "abc", 3, 0));
		ready("refused", a);
		so_error(a);
		so_error(a);
		num("send", send(a, "abc", 3, 0));
		num("send", send(a, "abc", 3, 0));
		num("send", send(a, "abc", 3, 0));
		num("recv", recv(a, "x", 1, MSG_DONTWAIT));
		num("recv", recv(a, "x", 1, MSG_DONTWAIT));
		receive("no error queue", a, MSG_ERRQUEUE);

		unreached(family, &a);
		set(a, family == AF_INET ? IPPROTO_IP : IPPROTO_IPV6, family == AF_INET ? IP_RECVERR : IPV6_RECVERR, 1);
		num("send", send(a, "abc", 3, 0));
		ready("with an error queue", a);
		receive("queue", a, MSG_ERRQUEUE);
		ready("taken", a);
		so_error(a);
		receive("queue", a, MSG_ERRQUEUE);
		num("send", send(a, "defg", 4, 0));
		num("recv", recv(a, "x", 1, MSG_DONTWAIT));
		num("recv", recv(a, "x", 1, MSG_DONTWAIT));
		receive("queue", a, MSG_ERRQUEUE);
		static char large[66000];
		num("too large", send(a, large, sizeof large, 0));
	}
}

TEST(shut, "shutdown and poll")
{
	int a = udp(AF_INET), b = udp(AF_INET);
	ready("fresh", a);
	err("shutdown", shutdown(a, SHUT_RD));
	ready("after", a);
	struct sockaddr_in to = four(INADDR_LOOPBACK, 0);
	bind(b, (void *)&to, sizeof to);
	to.sin_port = (in_port_t)port_of(b);
	err("shutdown bound", shutdown(b, SHUT_WR));
	a = udp(AF_INET);
	connect(a, (void *)&to, sizeof to);
	err("SHUT_RD", shutdown(a, SHUT_RD));
	ready("SHUT_RD", a);
	num("recv", recv(a, "x", 1, MSG_DONTWAIT));
	num("recv", recv(a, "x", 1, 0));
	num("send", send(a, "x", 1, 0));
	err("SHUT_WR", shutdown(a, SHUT_WR));
	ready("both", a);
	signal(SIGPIPE, SIG_IGN);
	num("send", send(a, "x", 1, 0));
	num("sendto", sendto(a, "x", 1, 0, (void *)&to, sizeof to));
	err("SHUT_RDWR", shutdown(a, SHUT_RDWR));
	ready("still", b);
}

TEST(stamps, "SIOCGSTAMP and FIONREAD")
{
	int a = udp(AF_INET), b = udp(AF_INET);
	struct sockaddr_in to = four(INADDR_LOOPBACK, 0);
	struct timeval tv;
	struct timespec ts, now;
	bind(b, (void *)&to, sizeof to);
	to.sin_port = (in_port_t)port_of(b);
	connect(a, (void *)&to, sizeof to);
	err("before", ioctl(b, 0x8906, &tv));
	send(a, "abc", 3, 0);
	send(a, "defgh", 5, 0);
	int n = -1;
	err("FIONREAD", ioctl(b, FIONREAD, &n));
	say("%d", n);
	err("SIOCOUTQ", ioctl(a, SIOCOUTQ, &n));
	say("%d", n);
	char buf[10];
	num("recv", recv(b, buf, sizeof buf, 0));
	err("SIOCGSTAMP", ioctl(b, 0x8906, &tv));
	clock_gettime(CLOCK_REALTIME, &now);
	say("recent %d", now.tv_sec - tv.tv_sec < 10);
	err("SIOCGSTAMPNS", ioctl(b, 0x8907, &ts));
	say("recent %d", now.tv_sec - ts.tv_sec < 10);
	err("of a socket that has received nothing", ioctl(a, 0x8906, &tv));
	err("SIOCATMARK", ioctl(b, SIOCATMARK, &n));
	err("SIOCINQ", ioctl(b, FIONREAD, &n));
	say("%d", n);
}

TEST(edges, "odd calls")
{
	int a = udp(AF_INET);
	struct sockaddr_in to = four(INADDR_LOOPBACK, htons(9)), none = four(INADDR_LOOPBACK, 0);
	num("no address", send(a, "x", 1, 0));
	num("port 0", sendto(a, "x", 1, 0, (void *)&none, sizeof none));
	num("short address", sendto(a, "x", 1, 0, (void *)&to, 8));
	num("MSG_OOB", sendto(a, "x", 1, MSG_OOB, (void *)&to, sizeof to));
	num("large", sendto(a, (char[65508]){0}, 65508, 0, (void *)&to, sizeof to));
	num("largest", sendto(a, (char[65507]){0}, 65507, 0, (void *)&to, sizeof to));
	num("recv MSG_OOB", recv(a, "x", 1, MSG_OOB | MSG_DONTWAIT));
	err("listen", listen(a, 1));
	err("accept", accept(a, NULL, NULL));
	err("bind again", bind(a, (void *)&none, sizeof none));
	a = udp(AF_INET);
	err("short bind", bind(a, (void *)&none, 8));
	err("not here", bind(a, (void *)&(struct sockaddr_in){AF_INET, 0, {htonl(0x01020304)}}, sizeof none));
	err("bind", bind(a, (void *)&none, sizeof none));
	err("twice", bind(a, (void *)&none, sizeof none));
	int s = must(socket(AF_INET6, SOCK_DGRAM, 0), "socket");
	err("IPv4 at IPv6", bind(s, (void *)&none, sizeof none));
	struct sockaddr_in6 local = six("fe80::1", 0);
	err("link local without a scope", bind(s, (void *)&local, sizeof local));
	local.sin6_scope_id = 77;
	err("with a bad one", bind(s, (void *)&local, sizeof local));
}

TEST(peeking, "SO_PEEK_OFF")
{
	int a = udp(AF_INET), b = udp(AF_INET), off = -1;
	struct sockaddr_in to = four(INADDR_LOOPBACK, 0);
	socklen_t len = sizeof off;
	char buf[10];
	bind(b, (void *)&to, sizeof to);
	to.sin_port = (in_port_t)port_of(b);
	connect(a, (void *)&to, sizeof to);
	send(a, "abcdef", 6, 0);
	send(a, "ghi", 3, 0);
	set(b, SOL_SOCKET, SO_PEEK_OFF, 2);
	for (int i = 0; i < 2; i++) {
		ssize_t n = recv(b, buf, 3, MSG_PEEK | MSG_DONTWAIT);
		getsockopt(b, SOL_SOCKET, SO_PEEK_OFF, &off, &len);
		say("peek %zd %.*s, then %d", n, n > 0 ? (int)n : 0, buf, off);
	}
	ssize_t n = recv(b, buf, 10, 0);
	getsockopt(b, SOL_SOCKET, SO_PEEK_OFF, &off, &len);
	say("read %zd, then %d", n, off);
}

// peek says what a receive gives and where it leaves the offset.
static void peek(int s, size_t room, int flags)
{
	char buf[20];
	int off = -1;
	struct iovec v = {buf, room};
	struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1};
	ssize_t n = recvmsg(s, &m, flags | MSG_DONTWAIT);
	getsockopt(s, SOL_SOCKET, SO_PEEK_OFF, &off, &(socklen_t){sizeof off});
	if (n < 0)
		say("flags %#x room %zu: %s, then %d", flags, room, strerror(errno), off);
	else
		say("flags %#x room %zu: %zd %.*s %#x, then %d", flags, room, n, (int)(n < (ssize_t)room ? n : (ssize_t)room), buf,
		    m.msg_flags & MSG_TRUNC, off);
}

TEST(peekingfar, "SO_PEEK_OFF over several datagrams")
{
	static const char *texts[] = {"abcdef", "ghi", "", "", "jklm"};
	int a = udp(AF_INET), b = udp(AF_INET);
	struct sockaddr_in to = four(INADDR_LOOPBACK, 0);
	bind(b, (void *)&to, sizeof to);
	to.sin_port = (in_port_t)port_of(b);
	connect(a, (void *)&to, sizeof to);
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		send(a, texts[i], strlen(texts[i]), 0);
	set(b, SOL_SOCKET, SO_PEEK_OFF, 0);
	for (int i = 0; i < 8; i++)
		peek(b, 10, MSG_PEEK);
	static const int offs[] = {5, 6, 7, 8, 9, 12, 13, 100, -1};
	for (size_t i = 0; i < sizeof offs / sizeof *offs; i++) {
		set(b, SOL_SOCKET, SO_PEEK_OFF, offs[i]);
		peek(b, 2, MSG_PEEK);
		set(b, SOL_SOCKET, SO_PEEK_OFF, offs[i]);
		peek(b, 4, MSG_PEEK | MSG_TRUNC);
	}
	set(b, SOL_SOCKET, SO_PEEK_OFF, 10);
	peek(b, 3, 0);
	peek(b, 3, MSG_PEEK);
	peek(b, 1, MSG_TRUNC);
	for (int i = 0; i < 4; i++)
		peek(b, 10, 0);
}

#ifndef IP_LOCAL_PORT_RANGE
#define IP_LOCAL_PORT_RANGE 51
#endif

// ranged makes a socket whose ports are 40000 to 40003.
static int ranged(int type)
{
	int s = must(socket(AF_INET, type, 0), "socket");
	unsigned range = 40003u << 16 | 40000; // of 32768 to 60999
	err("range", setsockopt(s, IPPROTO_IP, IP_LOCAL_PORT_RANGE, &range, sizeof range));
	return s;
}

// say_range says whether a socket has a port, of the range or not.
static void say_range(const char *what, int e, int s)
{
	int port = port_of(s), host = ntohs((uint16_t)port);
	say("%s: %s, port %s", what, e < 0 ? strerror(errno) : "ok",
	    port == 0 ? "none" : host >= 40000 && host <= 40003 ? "of the range" : "of none");
}

TEST(portrange, "IP_LOCAL_PORT_RANGE")
{
	static const unsigned values[] = {0, 40000, 40000u << 16, 40001u << 16 | 40000, 40000u << 16 | 40001, 1u << 16 | 1, ~0u};
	unsigned v;
	int s = udp(AF_INET);
	for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
		err("set", setsockopt(s, IPPROTO_IP, IP_LOCAL_PORT_RANGE, &values[i], 4));
		getsockopt(s, IPPROTO_IP, IP_LOCAL_PORT_RANGE, &v, &(socklen_t){sizeof v});
		say("is %#x", v);
	}
	err("short", setsockopt(s, IPPROTO_IP, IP_LOCAL_PORT_RANGE, &v, 2));
	struct sockaddr_in none = four(INADDR_LOOPBACK, 0), peer = four(INADDR_LOOPBACK, 0);
	for (int i = 0; i < 6; i++) {
		s = ranged(SOCK_DGRAM);
		say_range("bind", bind(s, (void *)&none, sizeof none), s);
		s = ranged(SOCK_STREAM);
		say_range("bind a stream", bind(s, (void *)&none, sizeof none), s);
	}
	for (int i = 3; i < getdtablesize() && i < 60; i++)
		close(i);
	int l = must(socket(AF_INET, SOCK_STREAM, 0), "socket");
	bind(l, (void *)&none, sizeof none);
	listen(l, 5);
	peer.sin_port = (in_port_t)port_of(l);
	for (int i = 0; i < 3; i++) {
		s = ranged(SOCK_STREAM);
		say_range("connect", connect(s, (void *)&peer, sizeof peer), s);
	}
	s = ranged(SOCK_STREAM);
	say_range("listen", listen(s, 1), s);
	s = ranged(SOCK_DGRAM);
	say_range("connect datagrams", connect(s, (void *)&peer, sizeof peer), s);
	s = ranged(SOCK_DGRAM);
	say_range("send", (int)sendto(s, "x", 1, 0, (void *)&peer, sizeof peer), s);
}
