// TCP: disconnecting, queues, urgent data, SO_RCVLOWAT, TCP_INQ, TCP_INFO.
#include "gt.h"
#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <netinet/udp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <linux/sockios.h>
#include <linux/errqueue.h>
#include <linux/net_tstamp.h>
#include <net/if_arp.h>

static struct sockaddr_in lo4(int port) { struct sockaddr_in a = {AF_INET, htons(port), {htonl(INADDR_LOOPBACK)}}; return a; }
static int tcp_listen(struct sockaddr_in *a) {
	int l = socket(AF_INET, SOCK_STREAM, 0);
	*a = lo4(0);
	must(bind(l, (void *)a, sizeof *a), "bind");
	must(listen(l, 5), "listen");
	socklen_t n = sizeof *a;
	getsockname(l, (void *)a, &n);
	return l;
}

static void tcp_pair(int p[2]) {
	struct sockaddr_in a;
	int l = tcp_listen(&a);
	p[0] = socket(AF_INET, SOCK_STREAM, 0);
	must(connect(p[0], (void *)&a, sizeof a), "connect");
	p[1] = must(accept(l, 0, 0), "accept");
	close(l);
}

static int udp_bound(struct sockaddr_in *a) {
	int s = socket(AF_INET, SOCK_DGRAM, 0);
	*a = lo4(0);
	must(bind(s, (void *)a, sizeof *a), "bind");
	socklen_t n = sizeof *a;
	getsockname(s, (void *)a, &n);
	return s;
}

static void name(const char *what, int s) {
	struct sockaddr_in a;
	socklen_t n = sizeof a;
	char b[40];
	memset(&a, 0, sizeof a);
	if (getsockname(s, (void *)&a, &n)) { err(what, -1); return; }
	say("%s: family %d addr %s port %s len %d", what, a.sin_family, inet_ntop(AF_INET, &a.sin_addr, b, sizeof b), a.sin_port ? "some" : "0", n);
	n = sizeof a;
	if (getpeername(s, (void *)&a, &n)) { err("  peer", -1); return; }
	say("  peer family %d addr %s port %s", a.sin_family, inet_ntop(AF_INET, &a.sin_addr, b, sizeof b), a.sin_port ? "some" : "0");
}

static void poll_of(const char *what, int fd) {
	struct pollfd p = {fd, POLLIN|POLLOUT|POLLPRI|POLLRDHUP|POLLRDNORM|POLLRDBAND|POLLWRNORM|POLLWRBAND|POLLMSG};
	poll(&p, 1, 0);
	say("%s: poll %x", what, p.revents);
}

static struct sockaddr unspec = {AF_UNSPEC};

TEST(unspec_tcp, "tcp unspec") {
	int p[2];
	struct sockaddr_in a;
	int s = socket(AF_INET, SOCK_STREAM, 0);
	err("fresh", connect(s, &unspec, sizeof unspec));
	name("fresh", s);
	a = lo4(0);
	bind(s, (void *)&a, sizeof a);
	err("bound", connect(s, &unspec, sizeof unspec));
	name("bound", s);
	close(s);
	int l = tcp_listen(&a);
	err("listening", connect(l, &unspec, sizeof unspec));
	poll_of("listening", l);
	fcntl(l, F_SETFL, O_NONBLOCK);
	err("accept", accept(l, 0, 0));
	fcntl(l, F_SETFL, 0);
	s = socket(AF_INET, SOCK_STREAM, 0);
	err("connect to former listener", connect(s, (void *)&a, sizeof a));
	close(s);
	err("listen again", listen(l, 5));
	socklen_t n = sizeof a;
	getsockname(l, (void *)&a, &n);
	s = socket(AF_INET, SOCK_STREAM, 0);
	err("connect to it", connect(s, (void *)&a, sizeof a));
	int c = accept(l, 0, 0);
	err("connected", connect(s, &unspec, sizeof unspec));
	poll_of("connected", s);
	poll_of("other", c);
	char b[8];
	num("other recv", recv(c, b, 8, MSG_DONTWAIT));
	num("other recv", recv(c, b, 8, MSG_DONTWAIT));
	num("send", send(s, "x", 1, MSG_NOSIGNAL));
	num("recv", recv(s, b, 8, MSG_DONTWAIT));
	err("connect again", connect(s, (void *)&a, sizeof a));
	name("again", s);
	int d = accept(l, 0, 0);
	num("send", send(s, "abc", 3, 0));
	num("recv", recv(d, b, 8, 0));
	err("shut", shutdown(s, SHUT_WR));
	err("connect unspec", connect(s, &unspec, sizeof unspec));
	err("short", connect(s, &unspec, 1));
	err("2 bytes", connect(s, &unspec, 2));
}

TEST(unspec_bound, "tcp unspec bound before connect") {
	struct sockaddr_in a, b = lo4(0);
	int l = tcp_listen(&a);
	int s = socket(AF_INET, SOCK_STREAM, 0);
	bind(s, (void *)&b, sizeof b);
	connect(s, (void *)&a, sizeof a);
	int c = accept(l, 0, 0);
	err("unspec", connect(s, &unspec, sizeof unspec));
	name("s", s);
	close(s);
	s = socket(AF_INET, SOCK_STREAM, 0);
	b.sin_addr.s_addr = 0;
	bind(s, (void *)&b, sizeof b);
	connect(s, (void *)&a, sizeof a);
	c = accept(l, 0, 0);
	err("unspec", connect(s, &unspec, sizeof unspec));
	name("s", s);
}

TEST(queues, "SIOCINQ, SIOCOUTQ, SIOCOUTQNSD") {
	int p[2], v;
	tcp_pair(p);
	v = -7;
	num("inq", ioctl(p[1], SIOCINQ, &v));
	say("%d", v);
	v = -7;
	num("outqnsd", ioctl(p[0], SIOCOUTQNSD, &v));
	say("%d", v);
	send(p[0], "hello", 5, 0);
	usleep(20000);
	v = -7;
	num("inq", ioctl(p[1], SIOCINQ, &v));
	say("%d", v);
	v = -7;
	num("outq", ioctl(p[0], SIOCOUTQ, &v));
	say("%d", v);
	v = -7;
	num("outqnsd", ioctl(p[0], SIOCOUTQNSD, &v));
	say("%d", v);
	v = -7;
	num("atmark", ioctl(p[1], SIOCATMARK, &v));
	say("%d", v);
	shutdown(p[0], SHUT_WR);
	usleep(10000);
	v = -7;
	num("inq fin", ioctl(p[1], SIOCINQ, &v));
	say("%d", v);
	char b[8];
	recv(p[1], b, 5, 0);
	v = -7;
	num("inq fin read", ioctl(p[1], SIOCINQ, &v));
	say("%d", v);
	struct sockaddr_in a;
	int l = tcp_listen(&a);
	num("listen inq", ioctl(l, SIOCINQ, &v));
	num("listen outq", ioctl(l, SIOCOUTQ, &v));
	num("listen outqnsd", ioctl(l, SIOCOUTQNSD, &v));
	num("listen atmark", ioctl(l, SIOCATMARK, &v));
	int s = socket(AF_INET, SOCK_STREAM, 0);
	v = -7;
	num("fresh inq", ioctl(s, SIOCINQ, &v));
	say("%d", v);
	v = -7;
	num("fresh outq", ioctl(s, SIOCOUTQ, &v));
	say("%d", v);
	v = -7;
	num("fresh outqnsd", ioctl(s, SIOCOUTQNSD, &v));
	say("%d", v);
	int u = udp_bound(&a);
	v = -7;
	num("udp inq", ioctl(u, SIOCINQ, &v));
	say("%d", v);
	num("udp outq", ioctl(u, SIOCOUTQ, &v));
	say("%d", v);
	num("udp outqnsd", ioctl(u, SIOCOUTQNSD, &v));
	num("udp atmark", ioctl(u, SIOCATMARK, &v));
	int x[2];
	socketpair(AF_UNIX, SOCK_STREAM, 0, x);
	send(x[0], "hello", 5, 0);
	v = -7;
	num("unix inq", ioctl(x[1], SIOCINQ, &v));
	say("%d", v);
	v = -7;
	num("unix outq", ioctl(x[1], SIOCOUTQ, &v));
	say("%d", v);
	num("unix outqnsd", ioctl(u, SIOCOUTQNSD, &v));
	num("unix atmark", ioctl(x[1], SIOCATMARK, &v));
	num("tiocoutq", ioctl(x[0], TIOCOUTQ, &v));
	say("%d", v != 0);
}

TEST(oob, "urgent data of TCP") {
	int p[2];
	tcp_pair(p);
	char b[16] = {0};
	int v;
	fcntl(p[1], F_SETOWN, getpid());
	signal(SIGURG, SIG_IGN);
	num("send", send(p[0], "abc", 3, MSG_OOB));
	usleep(10000);
	poll_of("urgent", p[1]);
	num("atmark", ioctl(p[1], SIOCATMARK, &v));
	say("%d", v);
	num("oob peek", recv(p[1], b, 4, MSG_OOB|MSG_PEEK));
	num("oob", recv(p[1], b, 4, MSG_OOB));
	say("%s", b);
	num("oob again", recv(p[1], b, 4, MSG_OOB));
	poll_of("urgent", p[1]);
	num("recv", recv(p[1], b, 8, MSG_DONTWAIT));
	say("%.8s", b);
	num("atmark", ioctl(p[1], SIOCATMARK, &v));
	say("%d", v);
	num("recv", recv(p[1], b, 8, MSG_DONTWAIT));
	num("oob none", recv(p[1], b, 4, MSG_OOB));
	num("send", send(p[0], "123", 3, 0));
	num("send", send(p[0], "4", 1, MSG_OOB));
	num("send", send(p[0], "56", 2, 0));
	usleep(10000);
	memset(b, 0, 16);
	num("recv", recv(p[1], b, 8, MSG_DONTWAIT));
	say("%.8s", b);
	num("atmark", ioctl(p[1], SIOCATMARK, &v));
	say("%d", v);
	memset(b, 0, 16);
	num("recv", recv(p[1], b, 8, MSG_DONTWAIT));
	say("%.8s", b);
	num("oob late", recv(p[1], b, 4, MSG_OOB));
	v = 1;
	setsockopt(p[1], SOL_SOCKET, SO_OOBINLINE, &v, 4);
	num("send", send(p[0], "123", 3, 0));
	num("send", send(p[0], "4", 1, MSG_OOB));
	num("send", send(p[0], "56", 2, 0));
	usleep(10000);
	num("oob inline", recv(p[1], b, 4, MSG_OOB));
	memset(b, 0, 16);
	num("recv", recv(p[1], b, 8, MSG_DONTWAIT));
	say("%.8s", b);
	num("atmark", ioctl(p[1], SIOCATMARK, &v));
	say("%d", v);
	poll_of("x", p[1]);
	memset(b, 0, 16);
	num("recv", recv(p[1], b, 8, MSG_DONTWAIT));
	say("%.8s", b);
	int s = socket(AF_INET, SOCK_STREAM, 0);
	num("unconnected", recv(s, b, 1, MSG_OOB));
	struct sockaddr_in a;
	int l = tcp_listen(&a);
	num("listening", recv(l, b, 1, MSG_OOB));
}

static volatile int urg;
static void on_urg(int n) { urg++; }
TEST(sigurg, "SIGURG") {
	int p[2];
	tcp_pair(p);
	signal(SIGURG, on_urg);
	fcntl(p[1], F_SETOWN, getpid());
	send(p[0], "a", 1, MSG_OOB);
	usleep(10000);
	say("%d", urg);
	int x[2];
	socketpair(AF_UNIX, SOCK_STREAM, 0, x);
	fcntl(x[1], F_SETOWN, getpid());
	send(x[0], "a", 1, MSG_OOB);
	usleep(10000);
	say("%d", urg);
}

TEST(rcvlowat, "SO_RCVLOWAT") {
	int p[2], v = 4;
	tcp_pair(p);
	char b[16];
	num("set", setsockopt(p[1], SOL_SOCKET, SO_RCVLOWAT, &v, 4));
	int ep = epoll_create1(0);
	struct epoll_event e = {EPOLLIN};
	epoll_ctl(ep, EPOLL_CTL_ADD, p[1], &e);
	send(p[0], "ab", 2, 0);
	usleep(10000);
	poll_of("2 of 4", p[1]);
	num("epoll", epoll_wait(ep, &e, 1, 0));
	send(p[0], "cd", 2, 0);
	usleep(10000);
	poll_of("4 of 4", p[1]);
	num("epoll", epoll_wait(ep, &e, 1, 0));
	num("recv 2", recv(p[1], b, 2, 0));
	poll_of("2 of 4", p[1]);
	num("nonblock recv", recv(p[1], b, 8, MSG_DONTWAIT));
	send(p[0], "ab", 2, 0);
	usleep(10000);
	struct timeval tv = {0, 50000};
	setsockopt(p[1], SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof tv);
	num("blocking recv 8 of 2", recv(p[1], b, 8, 0));
	send(p[0], "ab", 2, 0);
	shutdown(p[0], SHUT_WR);
	usleep(10000);
	poll_of("fin", p[1]);
	num("recv", recv(p[1], b, 8, 0));
	v = 0;
	setsockopt(p[1], SOL_SOCKET, SO_RCVLOWAT, &v, 4);
	socklen_t n = 4;
	getsockopt(p[1], SOL_SOCKET, SO_RCVLOWAT, &v, &n);
	say("%d", v);
}

TEST(inq, "TCP_INQ") {
	int p[2], v = 1;
	tcp_pair(p);
	char b[16], c[64];
	num("set", setsockopt(p[1], IPPROTO_TCP, TCP_INQ, &v, 4));
	v = 2;
	num("2", setsockopt(p[1], IPPROTO_TCP, TCP_INQ, &v, 4));
	send(p[0], "hello", 5, 0);
	usleep(10000);
	struct iovec io = {b, 2};
	struct msghdr m = {.msg_iov = &io, .msg_iovlen = 1, .msg_control = c, .msg_controllen = sizeof c};
	num("recvmsg", recvmsg(p[1], &m, 0));
	struct cmsghdr *h = CMSG_FIRSTHDR(&m);
	if (h) say("level %d type %d len %d val %d", h->cmsg_level, h->cmsg_type, (int)h->cmsg_len, *(int *)CMSG_DATA(h));
	else say("none");
	shutdown(p[0], SHUT_WR);
	usleep(10000);
	m.msg_controllen = sizeof c;
	num("recvmsg", recvmsg(p[1], &m, 0));
	h = CMSG_FIRSTHDR(&m);
	if (h) say("val %d", *(int *)CMSG_DATA(h));
	else say("none");
}

static void info(const char *what, int s) {
	struct tcp_info i;
	socklen_t n = sizeof i;
	memset(&i, 0xff, sizeof i);
	if (getsockopt(s, IPPROTO_TCP, TCP_INFO, &i, &n)) { err(what, -1); return; }
	say("%s: len %d state %d ca %d retr %d probes %d backoff %d opt %x advmss %u pmtu %u reord %u", what, n, i.tcpi_state, i.tcpi_ca_state, i.tcpi_retransmits, i.tcpi_probes, i.tcpi_backoff, i.tcpi_options, i.tcpi_advmss, i.tcpi_pmtu, i.tcpi_reordering);
	say("   rto>0 %d rtt>0 %d rcvspace>0 %d ssthresh %u total %u", i.tcpi_rto > 0, i.tcpi_rtt>0, i.tcpi_rcv_space > 0, i.tcpi_snd_ssthresh, i.tcpi_total_retrans);
}

TEST(tcpinfo, "TCP_INFO") {
	int p[2];
	struct sockaddr_in a;
	int s = socket(AF_INET, SOCK_STREAM, 0);
	info("fresh", s);
	int l = tcp_listen(&a);
	info("listen", l);
	tcp_pair(p);
	info("client", p[0]);
	info("server", p[1]);
	char b[1000];
	memset(b,0,sizeof b);
	send(p[0], b, 1000, 0);
	recv(p[1], b, 1000, MSG_WAITALL);
	usleep(10000);
	info("client", p[0]);
	info("server", p[1]);
	struct { struct tcp_info i; unsigned char more[120]; } x;
	socklen_t n = sizeof x;
	getsockopt(p[0], IPPROTO_TCP, TCP_INFO, &x, &n);
	unsigned long long *q = (void *)((char *)&x + 120);
	say("acked %d received %llu", q[0] >= 1000, q[1]);
	shutdown(p[0], SHUT_WR);
	usleep(100000);
	info("client", p[0]);
	info("server", p[1]);
	n = 10;
	num("short", getsockopt(p[0], IPPROTO_TCP, TCP_INFO, &x, &n));
	say("%d", n);
}
