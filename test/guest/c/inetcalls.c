// Sockets of the Internet families and netlink: one call after another, many cases each.
#include "gt.h"
#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <netinet/udp.h>
#include <netinet/ip.h>
#include <netinet/ip_icmp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <linux/sockios.h>
#include <linux/errqueue.h>
#include <linux/net_tstamp.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
static struct sockaddr_in in4(const char *ip, int port) { struct sockaddr_in a = {AF_INET, htons(port)}; inet_pton(AF_INET, ip, &a.sin_addr); return a; }
static int udp(const char *ip, struct sockaddr_in *a) { int s = socket(AF_INET, SOCK_DGRAM, 0); *a = in4(ip, 0); must(bind(s, (void *)a, sizeof *a), "bind"); socklen_t n = sizeof *a; getsockname(s, (void *)a, &n); struct timeval tv = {0, 200000}; setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof tv); return s; }
static void tcp_pair(int p[2]) {
	struct sockaddr_in a = in4("127.0.0.1", 0);
	socklen_t n = sizeof a;
	int l = socket(AF_INET, SOCK_STREAM, 0);
	bind(l, (void *)&a, n);
	listen(l, 5);
	getsockname(l, (void *)&a, &n);
	p[0] = socket(AF_INET, SOCK_STREAM, 0);
	must(connect(p[0], (void *)&a, n), "connect");
	p[1] = accept(l, 0, 0);
	close(l);
}

static int opt(int s, int level, int name, int v) { return setsockopt(s, level, name, &v, sizeof v); }
static void poll_of(const char *what, int fd) { struct pollfd p = {fd, POLLIN|POLLOUT|POLLPRI|POLLRDHUP}; poll(&p, 1, 0); say("%s: poll %x", what, p.revents); }
TEST(mcast, "multicast") {
	struct sockaddr_in a, m;
	char b[64];
	int r = udp("0.0.0.0", &a), s = socket(AF_INET, SOCK_DGRAM, 0);
	struct ip_mreq q = {inet_addr("224.0.2.1"), {htonl(INADDR_LOOPBACK)}};
	struct ip_mreqn qn = {inet_addr("224.0.2.2"), {htonl(INADDR_LOOPBACK)}, 0};
	m = in4("224.0.2.1", 0);
	m.sin_port = a.sin_port;
	num("send without if", sendto(s, "x", 1, 0, (void *)&m, sizeof m));
	num("recv", recv(r, b, 64, 0));
	num("join", setsockopt(r, IPPROTO_IP, IP_ADD_MEMBERSHIP, &q, sizeof q));
	num("again", setsockopt(r, IPPROTO_IP, IP_ADD_MEMBERSHIP, &q, sizeof q));
	num("mif", setsockopt(s, IPPROTO_IP, IP_MULTICAST_IF, &q.imr_interface, 4));
	num("send", sendto(s, "x", 1, 0, (void *)&m, sizeof m));
	num("recv", recv(r, b, 64, 0));
	num("loop off", opt(s, IPPROTO_IP, IP_MULTICAST_LOOP, 0));
	num("send", sendto(s, "y", 1, 0, (void *)&m, sizeof m));
	num("recv", recv(r, b, 64, 0));
	num("loop on", opt(s, IPPROTO_IP, IP_MULTICAST_LOOP, 1));
	num("connect", connect(s, (void *)&m, sizeof m));
	num("send", send(s, "z", 1, 0));
	num("recv", recv(r, b, 64, 0));
	num("drop", setsockopt(r, IPPROTO_IP, IP_DROP_MEMBERSHIP, &q, sizeof q));
	num("again", setsockopt(r, IPPROTO_IP, IP_DROP_MEMBERSHIP, &q, sizeof q));
	num("send", send(s, "x", 1, 0));
	num("recv", recv(r, b, 64, 0));
	num("joinn", setsockopt(r, IPPROTO_IP, IP_ADD_MEMBERSHIP, &qn, sizeof qn));
	qn.imr_ifindex = 1;
	num("joinn if", setsockopt(r, IPPROTO_IP, IP_ADD_MEMBERSHIP, &qn, sizeof qn));
	qn.imr_ifindex = 99;
	num("joinn bad", setsockopt(r, IPPROTO_IP, IP_ADD_MEMBERSHIP, &qn, sizeof qn));
	q.imr_multiaddr.s_addr = inet_addr("10.0.0.1");
	num("not multicast", setsockopt(r, IPPROTO_IP, IP_ADD_MEMBERSHIP, &q, sizeof q));
	num("short", setsockopt(r, IPPROTO_IP, IP_ADD_MEMBERSHIP, &q, 4));
	struct sockaddr_in bm;
	int rb = socket(AF_INET, SOCK_DGRAM, 0);
	bm = in4("224.0.2.1", 0);
	num("bind to group", bind(rb, (void *)&bm, sizeof bm));
	num("connect from it", connect(rb, (void *)&a, sizeof a));
	int tcp = socket(AF_INET, SOCK_STREAM, 0);
	bm.sin_port = htons(1);
	num("tcp to group", connect(tcp, (void *)&bm, sizeof bm));
	bm = in4("255.255.255.255", 1);
	num("tcp to broadcast", connect(tcp, (void *)&bm, sizeof bm));
	num("udp to broadcast", connect(s, (void *)&bm, sizeof bm));
	num("sendto broadcast", sendto(r, "x", 1, 0, (void *)&bm, sizeof bm));

	bm = in4("127.1.2.3", 0);
	num("bind 127.1.2.3", bind(socket(AF_INET, SOCK_DGRAM, 0), (void *)&bm, sizeof bm));
	num("bind 127.1.2.3 tcp", bind(socket(AF_INET, SOCK_STREAM, 0), (void *)&bm, sizeof bm));
	bm = in4("127.255.255.255", 0);
	num("bind lo bcast", bind(socket(AF_INET, SOCK_DGRAM, 0), (void *)&bm, sizeof bm));
	num("bind lo bcast tcp", bind(socket(AF_INET, SOCK_STREAM, 0), (void *)&bm, sizeof bm));
}

TEST(bcast, "broadcast on lo") {
	struct sockaddr_in a, m;
	char b[64];
	int r = udp("0.0.0.0", &a), s = socket(AF_INET, SOCK_DGRAM, 0);
	m = in4("127.255.255.255", 0);
	m.sin_port = a.sin_port;
	num("no option", sendto(s, "x", 1, 0, (void *)&m, sizeof m));
	num("connect", connect(s, (void *)&m, sizeof m));
	opt(s, SOL_SOCKET, SO_BROADCAST, 1);
	num("with option", sendto(s, "x", 1, 0, (void *)&m, sizeof m));
	num("recv", recv(r, b, 64, 0));
	num("connect", connect(s, (void *)&m, sizeof m));
}

static void cm(struct msghdr *m) { for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) say("  cmsg %d %d len %d first %d", c->cmsg_level, c->cmsg_type, (int)c->cmsg_len, c->cmsg_level == SOL_SOCKET ? -1 : *(unsigned char *)CMSG_DATA(c)); }
TEST(cmsgsend, "control messages to send") {
	struct sockaddr_in a, m;
	char b[64], c[200];
	int r = udp("127.0.0.1", &a), s = socket(AF_INET, SOCK_DGRAM, 0);
	opt(r, IPPROTO_IP, IP_RECVTOS, 1);
	opt(r, IPPROTO_IP, IP_RECVTTL, 1);
	struct { int level, type, len, v; } t[] = {{IPPROTO_IP, IP_TOS, 4, 0x10}, {IPPROTO_IP, IP_TOS, 1, 0x20}, {IPPROTO_IP, IP_TOS, 2, 0x20}, {IPPROTO_IP, IP_TOS, 4, 300}, {IPPROTO_IP, IP_TTL, 4, 5}, {IPPROTO_IP, IP_TTL, 4, 0}, {IPPROTO_IP, IP_TTL, 4, 256}, {IPPROTO_IP, IP_TTL, 1, 7}, {IPPROTO_IP, IP_RETOPTS, 4, 0}, {IPPROTO_IP, 99, 4, 0}, {SOL_SOCKET, SO_MARK, 4, 3}, {SOL_SOCKET, SCM_RIGHTS, 4, 0}, {SOL_SOCKET, SCM_CREDENTIALS, 12, 0}, {SOL_SOCKET, 99, 4, 0}, {IPPROTO_UDP, UDP_SEGMENT, 2, 1}, {IPPROTO_UDP, 99, 2, 1}, {SOL_SOCKET, SO_TIMESTAMPING, 4, 2}, {SOL_SOCKET, SO_TIMESTAMPING, 4, 1<<3}, {SOL_SOCKET, SCM_TXTIME, 8, 0}, {IPPROTO_IPV6, IPV6_TCLASS, 4, 1}};
	for (unsigned i = 0; i < sizeof t / sizeof *t; i++) {
		memset(c, 0, sizeof c);
		struct iovec io = {"abc", 3};
		m = a;
		struct msghdr h = {&m, sizeof m, &io, 1, c, CMSG_SPACE(t[i].len)};
		struct cmsghdr *x = CMSG_FIRSTHDR(&h);
		x->cmsg_level = t[i].level;
		x->cmsg_type = t[i].type;
		x->cmsg_len = CMSG_LEN(t[i].len);
		memcpy(CMSG_DATA(x), &t[i].v, t[i].len < 4 ? t[i].len : 4);
		char w[60];
		sprintf(w, "%d %d %d %d", t[i].level, t[i].type, t[i].len, t[i].v);
		if (num(w, sendmsg(s, &h, 0)) >= 0) { io.iov_base = b; io.iov_len = 64; h.msg_controllen = sizeof c; num("  recv", recvmsg(r, &h, 0)); cm(&h); while (recv(r, b, 64, MSG_DONTWAIT) >= 0) ; }
	}
	struct { int level, type, len; } bad[] = {{IPPROTO_IP, IP_PKTINFO, 11}, {IPPROTO_IP, IP_PKTINFO, 12}, {IPPROTO_IP, IP_PKTINFO, 4}};
	for (int i = 0; i < 3; i++) { memset(c, 0, sizeof c); struct iovec io = {"abc", 3}; struct msghdr h = {&a, sizeof a, &io, 1, c, CMSG_SPACE(bad[i].len)}; struct cmsghdr *x = CMSG_FIRSTHDR(&h); x->cmsg_level = bad[i].level; x->cmsg_type = bad[i].type; x->cmsg_len = CMSG_LEN(bad[i].len); num("pktinfo", sendmsg(s, &h, 0)); }
	memset(c, 0, sizeof c);
	struct iovec io = {"abc", 3};
	struct msghdr h = {&a, sizeof a, &io, 1, c, CMSG_SPACE(12)};
	struct cmsghdr *x = CMSG_FIRSTHDR(&h);
	x->cmsg_level = IPPROTO_IP;
	x->cmsg_type = IP_PKTINFO;
	x->cmsg_len = CMSG_LEN(12);
	((struct in_pktinfo *)CMSG_DATA(x))->ipi_spec_dst.s_addr = inet_addr("127.0.0.9");
	num("from 127.0.0.9", sendmsg(s, &h, 0));
	socklen_t n = sizeof m;
	num("recv", recvfrom(r, b, 64, 0, (void *)&m, &n));
	say("%s", inet_ntoa(m.sin_addr));
	((struct in_pktinfo *)CMSG_DATA(x))->ipi_spec_dst.s_addr = inet_addr("9.9.9.9");
	num("from 9.9.9.9", sendmsg(s, &h, 0));
	((struct in_pktinfo *)CMSG_DATA(x))->ipi_spec_dst.s_addr = 0;
	((struct in_pktinfo *)CMSG_DATA(x))->ipi_ifindex = 1;
	num("through 1", sendmsg(s, &h, 0));
	((struct in_pktinfo *)CMSG_DATA(x))->ipi_ifindex = 77;
	num("through 77", sendmsg(s, &h, 0));
}

TEST(zerocopy, "MSG_ZEROCOPY") {
	int p[2];
	tcp_pair(p);
	char b[100] = {0}, c[200];
	num("without option", send(p[0], b, 100, MSG_ZEROCOPY));
	recv(p[1], b, 100, 0);
	poll_of("x", p[0]);
	num("option", opt(p[0], SOL_SOCKET, SO_ZEROCOPY, 1));
	num("send", send(p[0], b, 100, MSG_ZEROCOPY));
	num("send", send(p[0], b, 50, MSG_ZEROCOPY));
	recv(p[1], b, 100, 0);
	recv(p[1], b, 100, MSG_DONTWAIT);
	usleep(50000);
	poll_of("sent", p[0]);
	struct msghdr h = {.msg_control = c, .msg_controllen = sizeof c};
	num("errqueue", recvmsg(p[0], &h, MSG_ERRQUEUE));
	struct cmsghdr *x = CMSG_FIRSTHDR(&h);
	if (x) { struct sock_extended_err *e = (void *)CMSG_DATA(x); say("level %d type %d errno %d origin %d code %d info %u data %u flags %x", x->cmsg_level, x->cmsg_type, e->ee_errno, e->ee_origin, e->ee_code, e->ee_info, e->ee_data, h.msg_flags); }
	num("again", recvmsg(p[0], &h, MSG_ERRQUEUE));
	poll_of("after", p[0]);
	struct sockaddr_in a;
	int r = udp("127.0.0.1", &a), s = socket(AF_INET, SOCK_DGRAM, 0);
	opt(s, SOL_SOCKET, SO_ZEROCOPY, 1);
	num("udp", sendto(s, b, 100, MSG_ZEROCOPY, (void *)&a, sizeof a));
	recv(r, b, 100, 0);
	usleep(50000);
	poll_of("udp", s);
	h.msg_controllen = sizeof c;
	num("errqueue", recvmsg(s, &h, MSG_ERRQUEUE));
	x = CMSG_FIRSTHDR(&h);
	if (x) { struct sock_extended_err *e = (void *)CMSG_DATA(x); say("level %d type %d errno %d origin %d code %d info %u data %u flags %x len %d", x->cmsg_level, x->cmsg_type, e->ee_errno, e->ee_origin, e->ee_code, e->ee_info, e->ee_data, h.msg_flags, (int)x->cmsg_len); }
}

TEST(ping, "ping sockets") {
	struct sockaddr_in a = in4("127.0.0.1", 0);
	socklen_t n = sizeof a;
	unsigned char q[16] = {8, 0, 0, 0, 1, 2, 0, 1, 'h', 'i'}, b[100];
	int s = socket(AF_INET, SOCK_DGRAM, IPPROTO_ICMP);
	if (s < 0) { err("socket", -1); return; }
	num("bind", bind(s, (void *)&a, n));
	getsockname(s, (void *)&a, &n);
	say("port %d", a.sin_port != 0);
	struct timeval tv = {0, 300000};
	setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof tv);
	a = in4("127.0.0.1", 0);
	num("send", sendto(s, q, 10, 0, (void *)&a, n));
	num("recv", recvfrom(s, b, 100, 0, (void *)&a, &n));
	say("type %d code %d seq %d %c%c from %s %d", b[0], b[1], b[7], b[8], b[9], inet_ntoa(a.sin_addr), a.sin_port);
	q[0] = 0;
	num("send reply", sendto(s, q, 10, 0, (void *)&a, n));
	q[0] = 8;
	q[1] = 1;
	num("send code 1", sendto(s, q, 10, 0, (void *)&a, n));
	q[1] = 0;
	num("short", sendto(s, q, 7, 0, (void *)&a, n));
	num("8", sendto(s, q, 8, 0, (void *)&a, n));
	num("recv", recv(s, b, 100, 0));
	num("connect", connect(s, (void *)&a, n));
	num("send", send(s, q, 10, 0));
	num("recv", recv(s, b, 100, 0));
	num("unconnected", send(socket(AF_INET, SOCK_DGRAM, IPPROTO_ICMP), q, 10, 0));
	a.sin_family = AF_INET6;
	num("family", sendto(s, q, 10, 0, (void *)&a, n));
	num("oob", sendto(s, q, 10, MSG_OOB, (void *)&a, n));
	struct sockaddr_in c = in4("127.0.0.1", 77);
	num("bind 77", bind(socket(AF_INET, SOCK_DGRAM, IPPROTO_ICMP), (void *)&c, n));
	num("bind 77 again", bind(socket(AF_INET, SOCK_DGRAM, IPPROTO_ICMP), (void *)&c, n));
	c = in4("9.9.9.9", 0);
	num("bind foreign", bind(socket(AF_INET, SOCK_DGRAM, IPPROTO_ICMP), (void *)&c, n));
	c = in4("224.0.0.1", 0);
	num("bind group", bind(socket(AF_INET, SOCK_DGRAM, IPPROTO_ICMP), (void *)&c, n));
}

TEST(raw, "raw sockets") {
	struct sockaddr_in a = in4("127.0.0.1", 0);
	socklen_t n = sizeof a;
	unsigned char b[200], d[60] = {0};
	int s = socket(AF_INET, SOCK_RAW, IPPROTO_UDP), h = socket(AF_INET, SOCK_RAW, IPPROTO_RAW);
	struct timeval tv = {0, 200000};
	setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof tv);
	num("listen", listen(s, 1));
	num("accept", accept(s, 0, 0));
	num("shutdown", shutdown(s, SHUT_RDWR));
	num("send unconnected", send(s, "x", 1, 0));
	int v = 0;
	num("hdrincl of raw", getsockopt(h, IPPROTO_IP, IP_HDRINCL, &v, &(socklen_t){4}));
	say("%d", v);
	struct sockaddr_in u;
	int us = udp("127.0.0.1", &u);
	d[0] = 0;
	d[1] = 99;
	memcpy(d + 2, &u.sin_port, 2);
	d[5] = 10;
	d[8] = 'h';
	d[9] = 'i';
	num("send udp", sendto(s, d, 10, 0, (void *)&a, n));
	num("udp recv", recv(us, b, 100, 0));
	num("raw recv", recvfrom(s, b, 200, 0, (void *)&a, &n));
	say("ver %x proto %d port %d", b[0], b[9], a.sin_port);
	struct iphdr *ip = (void *)b;
	memset(b, 0, 30);
	ip->version = 4;
	ip->ihl = 5;
	ip->protocol = 17;
	ip->ttl = 9;
	ip->daddr = htonl(INADDR_LOOPBACK);
	memcpy(b + 20, d, 10);
	num("hdrincl", sendto(h, b, 30, 0, (void *)&a, n));
	memset(b, 0, 20);
	num("raw recv", recv(s, b, 200, 0));
	say("ttl %d tot %d id %d src %x", b[8], b[2] << 8 | b[3], b[4] + b[5] > 0, ntohl(ip->saddr));
	num("udp recv", recv(us, b, 100, 0));
	num("short header", sendto(h, b, 10, 0, (void *)&a, n));
	num("connect", connect(s, (void *)&a, n));
	num("send", send(s, d, 10, 0));
	a.sin_family = AF_INET6;
	num("family", sendto(s, d, 10, 0, (void *)&a, n));
	num("oob", sendto(s, d, 10, MSG_OOB, (void *)&a, n));
	num("0 bytes", sendto(s, d, 0, 0, (void *)&(struct sockaddr_in){AF_INET, 0, {htonl(INADDR_LOOPBACK)}}, n));
	num("big", sendto(s, malloc(70000), 70000, 0, (void *)&(struct sockaddr_in){AF_INET, 0, {htonl(INADDR_LOOPBACK)}}, n));
	num("raw 0", socket(AF_INET, SOCK_RAW, 0));
	num("raw 255", close(socket(AF_INET, SOCK_RAW, 255)));
	num("raw6", socket(AF_INET6, SOCK_RAW, 58) >= 0);
	num("seqpacket", socket(AF_INET, SOCK_SEQPACKET, 0));
	num("rdm", socket(AF_INET, SOCK_RDM, 0));
	num("type 11", socket(AF_INET, 11, 0));
	num("type 0", socket(AF_INET, 0, 0));
	num("dgram tcp", socket(AF_INET, SOCK_DGRAM, 6));
	num("stream udp", socket(AF_INET, SOCK_STREAM, 17));
	num("stream 255", socket(AF_INET, SOCK_STREAM, 255));
	num("proto -1", socket(AF_INET, SOCK_STREAM, -1));
	num("flags", socket(AF_INET, SOCK_STREAM | 0x10, 0));
	num("family 46", socket(46, SOCK_STREAM, 0));
	num("unix proto", socket(AF_UNIX, SOCK_STREAM, 2));
	num("unix proto 1", socket(AF_UNIX, SOCK_STREAM, 1) >= 0);
	num("unix raw", socket(AF_UNIX, SOCK_RAW, 0) >= 0);
	num("unix rdm", socket(AF_UNIX, SOCK_RDM, 0));
}

TEST(udpodd, "UDP oddities") {
	struct sockaddr_in a;
	char b[100];
	int r = udp("127.0.0.1", &a), s = socket(AF_INET, SOCK_DGRAM, 0);
	char *big = calloc(1, 70000);
	num("65507", sendto(s, big, 65507, 0, (void *)&a, sizeof a));
	num("65508", sendto(s, big, 65508, 0, (void *)&a, sizeof a));
	num("recv trunc", recv(r, b, 10, MSG_TRUNC));
	num("0", sendto(s, big, 0, 0, (void *)&a, sizeof a));
	poll_of("0", r);
	int v;
	ioctl(r, FIONREAD, &v);
	say("%d", v);
	num("recv", recv(r, b, 10, 0));
	opt(s, SOL_SOCKET, SO_SNDBUF, 1);
	num("small sndbuf 4000", sendto(s, big, 4000, 0, (void *)&a, sizeof a));
	num("small sndbuf 10000", sendto(s, big, 10000, 0, (void *)&a, sizeof a));
	while (recv(r, b, 10, MSG_DONTWAIT) >= 0);
	num("connect", connect(r, (void *)&a, sizeof a));
	num("self", send(r, "x", 1, 0));
	num("recv", recv(r, b, 10, 0));
	num("shutdown rd", shutdown(r, SHUT_RD));
	num("recv", recv(r, b, 10, 0));
	num("send", send(r, "x", 1, 0));
	num("recv dontwait", recv(r, b, 10, MSG_DONTWAIT));
	num("wr", shutdown(r, SHUT_WR));
	num("send", send(r, "x", 1, MSG_NOSIGNAL));
	num("sendto", sendto(r, "x", 1, MSG_NOSIGNAL, (void *)&a, sizeof a));
	poll_of("shut", r);
	num("bad how", shutdown(r, 3));
	num("unconnected", shutdown(s, SHUT_RD));
	num("null to", sendto(s, "x", 1, 0, 0, 0));
	num("short to", sendto(s, "x", 1, 0, (void *)&a, 8));
	num("bad family", sendto(s, "x", 1, 0, &(struct sockaddr){99}, 16));
	num("unspec", sendto(s, "x", 1, 0, (void *)&(struct sockaddr_in){AF_UNSPEC, a.sin_port, a.sin_addr}, 16));
	num("any", sendto(s, "x", 1, 0, (void *)&(struct sockaddr_in){AF_INET, a.sin_port}, 16));
	num("recv wait 0 len", recv(s, b, 0, MSG_DONTWAIT));
	num("peek empty", recv(s, b, 1, MSG_PEEK|MSG_DONTWAIT));
	num("errqueue", recv(s, b, 1, MSG_ERRQUEUE));
	int seg = socket(AF_INET, SOCK_DGRAM, 0), g = udp("127.0.0.1", &a);
	num("segment", opt(seg, IPPROTO_UDP, UDP_SEGMENT, 4));
	num("send 10", sendto(seg, "0123456789", 10, 0, (void *)&a, sizeof a));
	num("recv", recv(g, b, 100, 0));
	num("recv", recv(g, b, 100, 0));
	num("recv", recv(g, b, 100, 0));
	num("gro", opt(g, IPPROTO_UDP, UDP_GRO, 1));
	num("segment -1", opt(seg, IPPROTO_UDP, UDP_SEGMENT, -1));
	num("segment 65536", opt(seg, IPPROTO_UDP, UDP_SEGMENT, 65536));
	num("encap", opt(seg, IPPROTO_UDP, UDP_ENCAP, 1));
}

TEST(udpshut, "shutdown of an unconnected UDP socket")
{
	struct sockaddr_in a;
	int s = udp("127.0.0.1", &a);
	num("shutdown", shutdown(s, SHUT_WR));
	num("sendto", sendto(s, "x", 1, MSG_NOSIGNAL, (void *)&a, sizeof a));
	num("recv", recv(s, &a, 1, MSG_DONTWAIT));
}

TEST(tcpodd, "TCP oddities") {
	int p[2];
	char b[100];
	tcp_pair(p);
	num("send fastopen", send(p[0], "x", 1, MSG_FASTOPEN));
	num("sendto addr", sendto(p[0], "x", 1, 0, (void *)&(struct sockaddr){AF_INET}, 16));
	num("recv", recv(p[1], b, 1, 0));
	num("errq", recv(p[1], b, 1, MSG_ERRQUEUE));
	num("connect", connect(p[0], (void *)&(struct sockaddr_in){AF_INET, 1}, 16));
	num("bind", bind(p[0], (void *)&(struct sockaddr_in){AF_INET}, 16));
	num("listen", listen(p[0], 1));
	struct sockaddr_in a;
	socklen_t n = sizeof a;
	memset(&a, 7, n);
	num("recvfrom", (send(p[0], "q", 1, 0), recvfrom(p[1], b, 1, 0, (void *)&a, &n)));
	say("namelen %d", n);
	int s = socket(AF_INET, SOCK_STREAM, 0);
	num("accept", accept(s, 0, 0));
	num("recv", recv(s, b, 1, 0));
	num("send", send(s, b, 1, MSG_NOSIGNAL));
	poll_of("fresh", s);
	num("shutdown", shutdown(s, SHUT_RD));
	num("getpeername", getpeername(s, (void *)&a, &n));
	s = socket(AF_INET, SOCK_STREAM, 0);
	a = in4("127.0.0.1", 1);
	num("refused", connect(s, (void *)&a, sizeof a));
	poll_of("refused", s);
	num("again", connect(s, (void *)&a, sizeof a));
	int v;
	n = 4;
	getsockopt(s, SOL_SOCKET, SO_ERROR, &v, &n);
	say("%d", v);
	fcntl(s, F_SETFL, O_NONBLOCK);
	num("nonblock", connect(s, (void *)&a, sizeof a));
	usleep(50000);
	poll_of("refused", s);
	getsockopt(s, SOL_SOCKET, SO_ERROR, &v, &n);
	say("%d", v);
	poll_of("refused", s);
	num("after", connect(s, (void *)&a, sizeof a));
	num("after", connect(s, (void *)&a, sizeof a));
	num("self connect", ({ int t = socket(AF_INET, SOCK_STREAM, 0); struct sockaddr_in z = in4("127.0.0.1", 0); socklen_t l = sizeof z; bind(t, (void *)&z, l); getsockname(t, (void *)&z, &l); int rc = connect(t, (void *)&z, l); if (!rc) { send(t, "abc", 3, 0); num("self recv", recv(t, b, 100, 0)); } rc; }));
	tcp_pair(p);
	opt(p[0], SOL_SOCKET, SO_SNDBUF, 4096);
	num("trunc", (send(p[0], "abcdef", 6, 0), recv(p[1], 0, 4, MSG_TRUNC)));
	num("peek trunc", recv(p[1], b, 4, MSG_TRUNC | MSG_PEEK));
	num("rest", recv(p[1], b, 10, 0));
	struct timeval tv = {0, 100000};
	setsockopt(p[1], SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof tv);
	num("timeout", recv(p[1], b, 1, 0));
	send(p[0], "ab", 2, 0);
	num("waitall", recv(p[1], b, 4, MSG_WAITALL));
	send(p[0], "ab", 2, 0);
	num("waitall peek", recv(p[1], b, 4, MSG_WAITALL|MSG_PEEK));
	num("waitall dontwait", recv(p[1], b, 4, MSG_WAITALL|MSG_DONTWAIT));
	shutdown(p[1], SHUT_RD);
	num("recv shut", recv(p[1], b, 4, 0));
	num("send to shut", send(p[0], "abc", 3, MSG_NOSIGNAL));
	usleep(20000);
	num("recv after shut", recv(p[1], b, 4, 0));
	poll_of("shut rd", p[1]);
	num("txtime", setsockopt(p[0], SOL_SOCKET, 61, &(int[2]){1, 0}, 8));
	struct tcp_info ti;
	(void)ti;
	num("ulp", setsockopt(p[0], IPPROTO_TCP, 31, "tls", 3));
	num("cc", setsockopt(p[0], IPPROTO_TCP, TCP_CONGESTION, "reno", 4));
	num("cc bad", setsockopt(p[0], IPPROTO_TCP, TCP_CONGESTION, "nosuch", 6));
}
struct req { struct nlmsghdr h; union { struct rtmsg r; struct ifinfomsg i; struct ifaddrmsg a; struct { unsigned char f; } g; }; char more[200]; };
// alone gives the test addresses of its own where other programs run, too.
static void alone(void)
{
	struct ifreq r = {.ifr_name = "lo"};
	if (unshare(CLONE_NEWNET))
		return;
	int s = socket(AF_INET, SOCK_DGRAM, 0);
	must(ioctl(s, SIOCGIFFLAGS, &r), "flags");
	r.ifr_flags |= IFF_UP;
	must(ioctl(s, SIOCSIFFLAGS, &r), "up");
	close(s);
}

static int nl;
static char ans[16384];
static void ask(const char *what, struct req *q, int type, int flags, int len) {
	q->h.nlmsg_type = type;
	q->h.nlmsg_flags = NLM_F_REQUEST | flags;
	q->h.nlmsg_seq = 5;
	q->h.nlmsg_len = len;
	if (send(nl, q, len, 0) < 0) { err(what, -1); return; }
	for (int more = 1; more;) { int n = recv(nl, ans, sizeof ans, MSG_DONTWAIT); if (n < 0) { err(what, -1); return; }
		for (struct nlmsghdr *h = (void *)ans; NLMSG_OK(h, n); h = NLMSG_NEXT(h, n)) { if (!(h->nlmsg_flags & NLM_F_MULTI) || h->nlmsg_type == NLMSG_DONE) more = 0;
			if (h->nlmsg_type == NLMSG_ERROR) say("%s: error %s", what, name_of(-*(int *)NLMSG_DATA(h)));
			else if (!(flags & NLM_F_DUMP) || h->nlmsg_type == NLMSG_DONE) { say("%s: type %d flags %x", what, h->nlmsg_type, h->nlmsg_flags); if (h->nlmsg_type == RTM_NEWROUTE) { struct rtmsg *r = NLMSG_DATA(h); say("  family %d dst %d src %d tos %d table %d proto %d scope %d type %d flags %x", r->rtm_family, r->rtm_dst_len, r->rtm_src_len, r->rtm_tos, r->rtm_table, r->rtm_protocol, r->rtm_scope, r->rtm_type, r->rtm_flags); int m = h->nlmsg_len - NLMSG_LENGTH(sizeof *r); for (struct rtattr *t = (void *)(r + 1); RTA_OK(t, m); t = RTA_NEXT(t, m)) say("  attr %d len %d %x", t->rta_type, t->rta_len, t->rta_type == RTA_CACHEINFO || t->rta_type == RTA_UID ? 0 : *(int *)RTA_DATA(t)); } } } }
}

TEST(netlink, "routes and addresses") {
	alone();
	nl = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
	struct req q;
	memset(&q, 0, sizeof q);
	struct rtattr *t = (void *)((char *)&q + NLMSG_LENGTH(sizeof(struct rtmsg)));
	q.r.rtm_family = AF_INET;
	q.r.rtm_dst_len = 32;
	t->rta_type = RTA_DST;
	t->rta_len = 8;
	*(int *)RTA_DATA(t) = htonl(INADDR_LOOPBACK);
	ask("get 127.0.0.1", &q, RTM_GETROUTE, 0, NLMSG_LENGTH(sizeof(struct rtmsg)) + 8);
	*(int *)RTA_DATA(t) = inet_addr("127.0.0.5");
	ask("get 127.0.0.5", &q, RTM_GETROUTE, 0, NLMSG_LENGTH(sizeof(struct rtmsg)) + 8);
	ask("get no dst", &q, RTM_GETROUTE, 0, NLMSG_LENGTH(sizeof(struct rtmsg)));
	memset(&q, 0, sizeof q);
	q.a.ifa_family = AF_INET;
	q.a.ifa_index = 1;
	q.a.ifa_prefixlen = 24;
	t = (void *)((char *)&q + NLMSG_LENGTH(sizeof(struct ifaddrmsg)));
	t->rta_type = IFA_LOCAL;
	t->rta_len = 8;
	*(int *)RTA_DATA(t) = inet_addr("127.5.5.5");
	int len = NLMSG_LENGTH(sizeof(struct ifaddrmsg)) + 8;
	ask("newaddr", &q, RTM_NEWADDR, NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL, len);
	ask("again", &q, RTM_NEWADDR, NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL, len);
	ask("deladdr", &q, RTM_DELADDR, NLM_F_ACK, len);
	ask("again", &q, RTM_DELADDR, NLM_F_ACK, len);
	q.a.ifa_index = 99;
	ask("bad if", &q, RTM_NEWADDR, NLM_F_ACK | NLM_F_CREATE, len);
	q.a.ifa_prefixlen = 40;
	q.a.ifa_index = 1;
	ask("bad prefix", &q, RTM_NEWADDR, NLM_F_ACK | NLM_F_CREATE, len);
	ask("no local", &q, RTM_NEWADDR, NLM_F_ACK, len - 8);
	memset(&q, 0, sizeof q);
	q.i.ifi_index = 1;
	ask("getlink", &q, RTM_GETLINK, 0, NLMSG_LENGTH(sizeof(struct ifinfomsg)));
	q.i.ifi_index = 99;
	ask("getlink 99", &q, RTM_GETLINK, 0, NLMSG_LENGTH(sizeof(struct ifinfomsg)));
	q.i.ifi_index = 0;
	ask("getlink none", &q, RTM_GETLINK, 0, NLMSG_LENGTH(sizeof(struct ifinfomsg)));
	ask("short", &q, RTM_GETLINK, 0, NLMSG_LENGTH(4));
	ask("getaddr", &q, RTM_GETADDR, 0, NLMSG_LENGTH(sizeof(struct ifaddrmsg)));
	ask("getneigh", &q, RTM_GETNEIGH, NLM_F_DUMP, NLMSG_LENGTH(12));
	ask("getrule", &q, RTM_GETRULE, NLM_F_DUMP, NLMSG_LENGTH(12));
	ask("getqdisc", &q, RTM_GETQDISC, NLM_F_DUMP, NLMSG_LENGTH(20));
	ask("getlinks", &q, RTM_GETLINK, NLM_F_DUMP, NLMSG_LENGTH(16));
	ask("type 300", &q, 300, NLM_F_ACK, NLMSG_LENGTH(16));
	ask("noop", &q, NLMSG_NOOP, NLM_F_ACK, NLMSG_LENGTH(16));
	ask("dellink", &q, RTM_DELLINK, NLM_F_ACK, NLMSG_LENGTH(16));
	q.i.ifi_index = 1;
	ask("setlink nothing", &q, RTM_SETLINK, NLM_F_ACK, NLMSG_LENGTH(16));
	ask("newlink nothing", &q, RTM_NEWLINK, NLM_F_ACK, NLMSG_LENGTH(16));
	q.i.ifi_index = 99;
	ask("setlink 99", &q, RTM_SETLINK, NLM_F_ACK, NLMSG_LENGTH(16));
	ask("dellink 99", &q, RTM_DELLINK, NLM_F_ACK, NLMSG_LENGTH(16));
}

static void told(const char *what, int s)
{
	char b[4096];
	int n = recv(s, b, sizeof b, MSG_DONTWAIT);
	if (n < 0) { err(what, -1); return; }
	struct nlmsghdr *h = (void *)b;
	say("%s: type %d flags %x seq %d family %d second %d", what, h->nlmsg_type, h->nlmsg_flags, h->nlmsg_seq, *(unsigned char *)NLMSG_DATA(h), ((unsigned char *)NLMSG_DATA(h))[1]);
}

TEST(events, "changes are told to the members of a group") {
	alone();
	nl = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
	int four = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE), none = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
	struct sockaddr_nl na = {AF_NETLINK, 0, 0, RTMGRP_IPV4_IFADDR};
	bind(four, (void *)&na, sizeof na);
	struct req q;
	memset(&q, 0, sizeof q);
	q.a.ifa_family = AF_INET;
	q.a.ifa_index = 1;
	q.a.ifa_prefixlen = 24;
	struct rtattr *t = (void *)((char *)&q + NLMSG_LENGTH(sizeof(struct ifaddrmsg)));
	t->rta_type = IFA_LOCAL;
	t->rta_len = 8;
	*(int *)RTA_DATA(t) = inet_addr("10.77.1.1");
	int len = NLMSG_LENGTH(sizeof(struct ifaddrmsg)) + 8;
	struct sockaddr_in own = in4("10.77.1.1", 0);
	num("bind before", bind(socket(AF_INET, SOCK_DGRAM, 0), (void *)&own, sizeof own));
	ask("newaddr", &q, RTM_NEWADDR, NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL, len);
	told("four", four);
	told("none", none);
	num("bind", bind(socket(AF_INET, SOCK_DGRAM, 0), (void *)&own, sizeof own));
	int l = socket(AF_INET, SOCK_STREAM, 0), c = socket(AF_INET, SOCK_STREAM, 0);
	socklen_t n = sizeof own;
	num("bind", bind(l, (void *)&own, n));
	listen(l, 1);
	getsockname(l, (void *)&own, &n);
	num("connect", connect(c, (void *)&own, n));
	ask("deladdr", &q, RTM_DELADDR, NLM_F_ACK, len);
	told("four", four);
	told("again", four);
	own.sin_port = 0;
	num("bind after", bind(socket(AF_INET, SOCK_DGRAM, 0), (void *)&own, sizeof own));
	setuid(1000);
	ask("as another user", &q, RTM_NEWADDR, NLM_F_ACK | NLM_F_CREATE, len);
}

TEST(route, "a route that is added") {
	alone();
	nl = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
	struct req q;
	memset(&q, 0, sizeof q);
	q.r.rtm_family = AF_INET;
	q.r.rtm_dst_len = 24;
	q.r.rtm_table = RT_TABLE_MAIN;
	q.r.rtm_protocol = RTPROT_BOOT;
	q.r.rtm_scope = RT_SCOPE_LINK;
	q.r.rtm_type = RTN_UNICAST;
	struct rtattr *t = (void *)((char *)&q + NLMSG_LENGTH(sizeof(struct rtmsg)));
	t->rta_type = RTA_DST;
	t->rta_len = 8;
	*(int *)RTA_DATA(t) = inet_addr("10.99.1.0");
	t = (void *)((char *)t + 8);
	t->rta_type = RTA_OIF;
	t->rta_len = 8;
	*(int *)RTA_DATA(t) = 1;
	int len = NLMSG_LENGTH(sizeof(struct rtmsg)) + 16;
	ask("new", &q, RTM_NEWROUTE, NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL, len);
	ask("again", &q, RTM_NEWROUTE, NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL, len);
	ask("del", &q, RTM_DELROUTE, NLM_F_ACK, len);
	ask("del again", &q, RTM_DELROUTE, NLM_F_ACK, len);
	*(int *)RTA_DATA(t) = 99;
	ask("bad interface", &q, RTM_NEWROUTE, NLM_F_ACK | NLM_F_CREATE, len);
	q.r.rtm_dst_len = 33;
	ask("bad length", &q, RTM_NEWROUTE, NLM_F_ACK | NLM_F_CREATE, len);
}
