// Program segments tests what looks at the packets of a connection: SO_ATTACH_FILTER and
// IP_MINTTL on sockets of TCP, TCP_SAVE_SYN; and UDP_SEGMENT with UDP_GRO.
#include "gt.h"

#include <arpa/inet.h>
#include <linux/filter.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <netinet/udp.h>
#include <sys/socket.h>
#include <sys/un.h>

#ifndef UDP_GRO
#define UDP_GRO 104
#endif
#ifndef TCP_TX_DELAY
#define TCP_TX_DELAY 37
#endif
#ifndef SIOCUNIXFILE
#define SIOCUNIXFILE (SIOCPROTOPRIVATE + 0)
#endif

static int attach_(int fd, const struct sock_filter *code, int n)
{
	struct sock_fprog p = {(unsigned short)n, (struct sock_filter *)code};
	return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &p, sizeof p);
}
#define ATTACH(fd, ...)                                             \
	({                                                          \
		const struct sock_filter gt_code[] = {__VA_ARGS__}; \
		attach_(fd, gt_code, sizeof gt_code / sizeof *gt_code); \
	})
#define NOTHING BPF_STMT(BPF_RET | BPF_K, 0)
#define ALL BPF_STMT(BPF_RET | BPF_K, -1u)

static int family = AF_INET;
static struct sockaddr_storage at;
static socklen_t at_len;

static int listener(void)
{
	int fd = must(socket(family, SOCK_STREAM, 0), "socket");
	struct sockaddr_in a = {AF_INET, 0, {htonl(INADDR_LOOPBACK)}};
	struct sockaddr_in6 b = {AF_INET6, 0, 0, IN6ADDR_LOOPBACK_INIT, 0};
	must(family == AF_INET ? bind(fd, (void *)&a, sizeof a) : bind(fd, (void *)&b, sizeof b), "bind");
	must(listen(fd, 5), "listen");
	at_len = sizeof at;
	getsockname(fd, (void *)&at, &at_len);
	alarm(40);
	return fd;
}

static int client(void) { return must(socket(family, SOCK_STREAM, 0), "socket"); }

static int set(int fd, int level, int name, int v) { return setsockopt(fd, level, name, &v, sizeof v); }

static void get(const char *what, int fd, int level, int name)
{
	int v = -1;
	socklen_t n = sizeof v;
	if (getsockopt(fd, level, name, &v, &n) < 0)
		say("%s: %s", what, name_of(errno));
	else
		say("%s: %d", what, v);
}

// arrived tells what a socket has to read within some time.
static void arrived(const char *what, int fd, int ms)
{
	char buf[256];
	struct pollfd p = {fd, POLLIN};
	int ready = poll(&p, 1, ms);
	ssize_t n = recv(fd, buf, sizeof buf, MSG_DONTWAIT);
	say("%s: poll %d, %zd %s %.*s", what, ready, n, n < 0 ? name_of(errno) : "", n > 0 ? (int)n : 0, buf);
}

static void pair(int l, int *a, int *b)
{
	*a = client();
	must(connect(*a, (void *)&at, at_len), "connect");
	*b = must(accept(l, NULL, NULL), "accept");
}

static void filters(void)
{
	int l = listener(), a, b;
	pair(l, &a, &b);
	err("before", send(a, "before", 6, 0));
	usleep(20000);
	err("attach", ATTACH(b, NOTHING));
	arrived("what was there", b, 100);
	num("send", send(a, "dropped", 7, 0));
	arrived("with the filter", b, 100);
	int n = -1;
	ioctl(b, FIONREAD, &n);
	say("FIONREAD %d", n);
	num("the other way", send(b, "back", 4, 0));
	arrived("the other way", a, 1000);
	err("detach", setsockopt(b, SOL_SOCKET, SO_DETACH_FILTER, &n, sizeof n));
	arrived("sent again", b, 5000);
	err("detach again", setsockopt(b, SOL_SOCKET, SO_DETACH_FILTER, &n, sizeof n));
	// The first byte of data, behind a header of 32 bytes.
	err("attach", ATTACH(b, BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 12), BPF_STMT(BPF_ALU | BPF_RSH | BPF_K, 2), BPF_STMT(BPF_MISC | BPF_TAX, 0),
		BPF_STMT(BPF_LDX | BPF_W | BPF_LEN, 0), BPF_STMT(BPF_MISC | BPF_TXA, 0), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 32, 2, 0),
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 32), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 'y', 0, 1), ALL, NOTHING));
	num("send", send(a, "yes", 3, 0));
	arrived("that begins with y", b, 1000);
	num("send", send(a, "no", 2, 0));
	arrived("that does not", b, 100);
	close(a), close(b);

	err("attach to the listener", ATTACH(l, NOTHING));
	a = client();
	fcntl(a, F_SETFL, O_NONBLOCK);
	num("connect", connect(a, (void *)&at, at_len));
	struct pollfd p = {a, POLLOUT};
	say("poll %d", poll(&p, 1, 200));
	fcntl(l, F_SETFL, O_NONBLOCK);
	num("accept", accept(l, NULL, NULL));
	close(a);
	err("attach to the listener", ATTACH(l, ALL));
	a = client();
	err("connect", connect(a, (void *)&at, at_len));
	p = (struct pollfd){l, POLLIN};
	poll(&p, 1, 1000);
	b = must(accept(l, NULL, NULL), "accept");
	char code[64];
	socklen_t len = 8;
	err("SO_GET_FILTER", getsockopt(b, SOL_SOCKET, SO_GET_FILTER, code, &len));
	say("inherited: %u", len);
	num("send", send(a, "through", 7, 0));
	arrived("through", b, 1000);
	close(a), close(b);

	a = client();
	err("attach before connect", ATTACH(a, NOTHING));
	fcntl(a, F_SETFL, O_NONBLOCK);
	num("connect", connect(a, (void *)&at, at_len));
	p = (struct pollfd){a, POLLOUT};
	say("poll %d", poll(&p, 1, 200));
}

TEST(filter4, "filters of TCP") { filters(); }
TEST(filter6, "filters of TCP over IPv6")
{
	family = AF_INET6;
	filters();
}

static void ttls(int level, int least, int sent)
{
	int l = listener(), a, b;
	get("first", l, level, least);
	err("256", set(l, level, least, 256));
	err("-1", set(l, level, least, -1));
	pair(l, &a, &b);
	err("least", set(b, level, least, 100));
	num("send", send(a, "near", 4, 0));
	arrived("too far", b, 100);
	err("sent with more", set(a, level, sent, 200));
	arrived("sent again with more", b, 5000);
	err("255", set(b, level, least, 255));
	num("send", send(a, "x", 1, 0));
	shutdown(a, SHUT_WR);
	arrived("with less", b, 100);
	err("0", set(b, level, least, 0));
	arrived("all", b, 8000);
	arrived("the end", b, 8000);
	close(a), close(b);

	err("of the listener", set(l, level, least, 255));
	a = client();
	fcntl(a, F_SETFL, O_NONBLOCK);
	num("connect from too far", connect(a, (void *)&at, at_len));
	struct pollfd p = {a, POLLOUT};
	say("poll %d", poll(&p, 1, 200));
	close(a);
	a = client();
	set(a, level, sent, 255);
	err("connect from near", connect(a, (void *)&at, at_len));
	b = must(accept(l, NULL, NULL), "accept");
	get("inherited", b, level, least);
	num("send", send(a, "hello", 5, 0));
	arrived("hello", b, 1000);
}

TEST(minttl, "IP_MINTTL") { ttls(IPPROTO_IP, IP_MINTTL, IP_TTL); }
TEST(minhops, "IPV6_MINHOPCOUNT")
{
	family = AF_INET6;
	ttls(IPPROTO_IPV6, 73, IPV6_UNICAST_HOPS);
}

static void syns(int mode)
{
	int l = listener(), a, b;
	unsigned char buf[200];
	socklen_t n = sizeof buf;
	get("first", l, IPPROTO_TCP, TCP_SAVE_SYN);
	err("3", set(l, IPPROTO_TCP, TCP_SAVE_SYN, 3));
	err("on", set(l, IPPROTO_TCP, TCP_SAVE_SYN, mode));
	get("now", l, IPPROTO_TCP, TCP_SAVE_SYN);
	num("the listener's", getsockopt(l, IPPROTO_TCP, TCP_SAVED_SYN, buf, &n));
	say("length %u", n);
	pair(l, &a, &b);
	get("inherited", b, IPPROTO_TCP, TCP_SAVE_SYN);
	n = 10;
	num("too short", getsockopt(b, IPPROTO_TCP, TCP_SAVED_SYN, buf, &n));
	say("length %u", n);
	n = sizeof buf;
	num("all", getsockopt(b, IPPROTO_TCP, TCP_SAVED_SYN, buf, &n));
	int skip = mode == 2 ? 14 : 0, ip = family == AF_INET ? 20 : 40;
	say("length %u, type %02x%02x, version %x, flags %02x, port %d", n, skip ? buf[12] : 0, skip ? buf[13] : 0, buf[skip] >> 4, buf[skip + ip + 13],
		buf[skip + ip + 2] == ((unsigned char *)&at)[2] && buf[skip + ip + 3] == ((unsigned char *)&at)[3]);
	n = sizeof buf;
	num("once", getsockopt(b, IPPROTO_TCP, TCP_SAVED_SYN, buf, &n));
	say("length %u", n);
	n = sizeof buf;
	num("the client's", getsockopt(a, IPPROTO_TCP, TCP_SAVED_SYN, buf, &n));
	say("length %u", n);
	err("set", setsockopt(b, IPPROTO_TCP, TCP_SAVED_SYN, buf, 4));
	get("TCP_TX_DELAY", a, IPPROTO_TCP, TCP_TX_DELAY);
	err("TCP_TX_DELAY", set(a, IPPROTO_TCP, TCP_TX_DELAY, 1000));
	get("TCP_TX_DELAY", a, IPPROTO_TCP, TCP_TX_DELAY);
}

TEST(syn, "TCP_SAVE_SYN") { syns(1); }
TEST(syn2, "TCP_SAVE_SYN with the link header") { syns(2); }
TEST(syn6, "TCP_SAVE_SYN over IPv6")
{
	family = AF_INET6;
	syns(1);
}

static void got(const char *what, int fd)
{
	static char buf[70000];
	char control[64];
	struct iovec v = {buf, sizeof buf};
	struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
	ssize_t n;
	say("%s:", what);
	while (m.msg_controllen = sizeof control, (n = recvmsg(fd, &m, MSG_DONTWAIT)) >= 0) {
		struct cmsghdr *c = CMSG_FIRSTHDR(&m);
		if (c)
			say("  %zd, level %d type %d length %zu: %d", n, c->cmsg_level, c->cmsg_type, c->cmsg_len, *(int *)CMSG_DATA(c));
		else
			say("  %zd", n);
	}
}

static void train(int fd, int size, int segment)
{
	static char buf[70000];
	char control[CMSG_SPACE(2)] = {0};
	struct iovec v = {buf, size};
	struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);
	c->cmsg_level = SOL_UDP, c->cmsg_type = UDP_SEGMENT, c->cmsg_len = CMSG_LEN(2);
	*(uint16_t *)CMSG_DATA(c) = segment;
	say("%d in %d", size, segment);
	num("sendmsg", sendmsg(fd, &m, 0));
}

TEST(gro, "UDP_SEGMENT and UDP_GRO")
{
	alarm(20);
	struct sockaddr_in to = {AF_INET, 0, {htonl(INADDR_LOOPBACK)}};
	socklen_t len = sizeof to;
	int b = must(socket(AF_INET, SOCK_DGRAM, 0), "socket"), a = must(socket(AF_INET, SOCK_DGRAM, 0), "socket");
	must(bind(b, (void *)&to, sizeof to), "bind");
	getsockname(b, (void *)&to, &len);
	must(connect(a, (void *)&to, sizeof to), "connect");
	set(b, SOL_SOCKET, SO_RCVBUF, 1 << 20);
	train(a, 2500, 1000);
	got("apart", b);
	err("UDP_GRO", set(b, SOL_UDP, UDP_GRO, 1));
	get("UDP_GRO", b, SOL_UDP, UDP_GRO);
	train(a, 2500, 1000);
	train(a, 1000, 1000);
	train(a, 64, 1);
	train(a, 65, 1);
	train(a, 65507, 1100);
	train(a, 66000, 1100);
	got("joined", b);
	err("UDP_SEGMENT", set(a, SOL_UDP, UDP_SEGMENT, 500));
	num("send", send(a, "short", 5, 0));
	static char data[1200];
	num("send", send(a, data, sizeof data, 0));
	num("sendto", sendto(a, data, sizeof data, 0, (void *)&to, sizeof to));
	got("joined", b);
	char one[10];
	num("send", send(a, data, sizeof data, 0));
	num("send", send(a, "next", 4, 0));
	num("recv", recv(b, one, sizeof one, MSG_DONTWAIT | MSG_TRUNC));
	num("peek", recv(b, one, sizeof one, MSG_DONTWAIT | MSG_PEEK | MSG_TRUNC));
	got("next", b);
	err("UDP_GRO off", set(b, SOL_UDP, UDP_GRO, 0));
	num("send", send(a, data, sizeof data, 0));
	got("apart", b);
}

TEST(unixfile, "SIOCUNIXFILE")
{
	alarm(10);
	struct sockaddr_un a = {AF_UNIX, "here"};
	int s = must(socket(AF_UNIX, SOCK_DGRAM, 0), "socket");
	num("not bound", ioctl(s, SIOCUNIXFILE, 0));
	must(bind(s, (void *)&a, sizeof a), "bind");
	int fd = ioctl(s, SIOCUNIXFILE, 0);
	err("bound", fd);
	char name[64], path[256];
	snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
	ssize_t n = readlink(name, path, sizeof path - 1);
	path[n > 0 ? n : 0] = 0;
	say("%s, flags %x, %x", strrchr(path, '/') ? strrchr(path, '/') : path, fcntl(fd, F_GETFL), fcntl(fd, F_GETFD));
	num("read", read(fd, path, 1));
	struct sockaddr_un x = {AF_UNIX, "\0abstract"};
	int t = must(socket(AF_UNIX, SOCK_STREAM, 0), "socket");
	must(bind(t, (void *)&x, sizeof x), "bind");
	num("abstract", ioctl(t, SIOCUNIXFILE, 0));
	must(setuid(1000), "setuid");
	num("of a user", ioctl(s, SIOCUNIXFILE, 0));
	num("of a user, not bound", ioctl(socket(AF_UNIX, SOCK_STREAM, 0), SIOCUNIXFILE, 0));
}

TEST(alert, "IP_ROUTER_ALERT")
{
	int r = must(socket(AF_INET, SOCK_RAW, IPPROTO_IGMP), "socket"), u = must(socket(AF_INET, SOCK_DGRAM, 0), "socket"),
	    raw = must(socket(AF_INET, SOCK_RAW, IPPROTO_RAW), "socket");
	err("off", set(r, IPPROTO_IP, IP_ROUTER_ALERT, 0));
	err("on", set(r, IPPROTO_IP, IP_ROUTER_ALERT, 1));
	err("on again", set(r, IPPROTO_IP, IP_ROUTER_ALERT, 1));
	get("now", r, IPPROTO_IP, IP_ROUTER_ALERT);
	err("off", set(r, IPPROTO_IP, IP_ROUTER_ALERT, 0));
	err("off again", set(r, IPPROTO_IP, IP_ROUTER_ALERT, 0));
	err("of UDP", set(u, IPPROTO_IP, IP_ROUTER_ALERT, 1));
	err("of IPPROTO_RAW", set(raw, IPPROTO_IP, IP_ROUTER_ALERT, 1));
	int r6 = must(socket(AF_INET6, SOCK_RAW, IPPROTO_RAW), "socket"), i6 = must(socket(AF_INET6, SOCK_RAW, IPPROTO_ICMPV6), "socket");
	err("off", set(r6, IPPROTO_IPV6, IPV6_ROUTER_ALERT, -1));
	err("on", set(r6, IPPROTO_IPV6, IPV6_ROUTER_ALERT, 0));
	err("on again", set(r6, IPPROTO_IPV6, IPV6_ROUTER_ALERT, 5));
	get("now", r6, IPPROTO_IPV6, IPV6_ROUTER_ALERT);
	err("off", set(r6, IPPROTO_IPV6, IPV6_ROUTER_ALERT, -1));
	err("off again", set(r6, IPPROTO_IPV6, IPV6_ROUTER_ALERT, -1));
	err("of ICMP", set(i6, IPPROTO_IPV6, IPV6_ROUTER_ALERT, 0));
}
