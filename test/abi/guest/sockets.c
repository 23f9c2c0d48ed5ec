// The kinds of sockets, and the states that one can be in.
#include "kinds.h"
#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

static int sock(int family, int type, int protocol)
{
	int fd = socket(family, type | SOCK_NONBLOCK, protocol);
	must(fd, "socket");
	return fd;
}

static socklen_t unix_name(struct sockaddr_un *a, const char *name)
{
	memset(a, 0, sizeof *a);
	a->sun_family = AF_UNIX;
	strcpy(a->sun_path, name);
	return offsetof(struct sockaddr_un, sun_path) + strlen(name) + 1;
}

static int unix_at(int type, const char *name)
{
	struct sockaddr_un a;
	int fd = sock(AF_UNIX, type, 0);
	unlink(name);
	socklen_t n = unix_name(&a, name);
	must(bind(fd, (struct sockaddr *)&a, n), "bind");
	chmod(name, 0777);
	return fd;
}

static void unix_to(subject *s, int type)
{
	struct sockaddr_un a;
	int listener = unix_at(type, "listener");
	must(listen(listener, 5), "listen");
	s->fd = sock(AF_UNIX, type, 0);
	socklen_t n = unix_name(&a, "listener");
	must(connect(s->fd, (struct sockaddr *)&a, n), "connect");
	s->peer = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
	must(s->peer, "accept");
	close(listener);
}

static void pair(subject *s, int type)
{
	int fd[2];
	must(socketpair(AF_UNIX, type | SOCK_NONBLOCK, 0, fd), "socketpair");
	s->fd = fd[0], s->peer = fd[1];
}

static void fill(subject *s)
{
	must(write(s->peer, "0123456789", 10), "write");
}

static void leave(subject *s)
{
	close(s->peer);
	s->peer = -1;
}

void unix_new(subject *s) { s->fd = sock(AF_UNIX, SOCK_STREAM, 0); }
void unix_bound(subject *s) { s->fd = unix_at(SOCK_STREAM, "sock"); }
void unix_listen(subject *s) { unix_bound(s), must(listen(s->fd, 2), "listen"); }
void unix_connected(subject *s) { unix_to(s, SOCK_STREAM); }
void unix_pair(subject *s) { pair(s, SOCK_STREAM); }
void unix_data(subject *s) { unix_to(s, SOCK_STREAM), fill(s); }
void unix_closed(subject *s) { unix_to(s, SOCK_STREAM), leave(s); }
void unix_stale(subject *s) { unix_to(s, SOCK_STREAM), must(write(s->fd, "x", 1), "write"), leave(s); }
void unix_shut_write(subject *s) { unix_to(s, SOCK_STREAM), shutdown(s->fd, SHUT_WR); }
void unix_shut_read(subject *s) { unix_to(s, SOCK_STREAM), shutdown(s->fd, SHUT_RD); }
void unix_both(subject *s) { unix_to(s, SOCK_STREAM), shutdown(s->fd, SHUT_RDWR); }
void unix_peer_shut(subject *s) { unix_to(s, SOCK_STREAM), shutdown(s->peer, SHUT_WR); }

void unix_listen_gone(subject *s)
{
	struct sockaddr_un a;
	int listener = unix_at(SOCK_STREAM, "listener");
	must(listen(listener, 5), "listen");
	s->fd = sock(AF_UNIX, SOCK_STREAM, 0);
	socklen_t n = unix_name(&a, "listener");
	must(connect(s->fd, (struct sockaddr *)&a, n), "connect");
	close(listener);
}

void unixdg_new(subject *s) { s->fd = sock(AF_UNIX, SOCK_DGRAM, 0); }
void unixdg_bound(subject *s) { s->fd = unix_at(SOCK_DGRAM, "sock"); }
void unixdg_pair(subject *s) { pair(s, SOCK_DGRAM); }
void unixdg_data(subject *s) { pair(s, SOCK_DGRAM), fill(s); }
void unixdg_closed(subject *s) { pair(s, SOCK_DGRAM), leave(s); }

void unixdg_full(subject *s)
{
	pair(s, SOCK_DGRAM);
	while (send(s->fd, buffer, 100, 0) > 0)
		;
}

void unixseq_new(subject *s) { s->fd = sock(AF_UNIX, SOCK_SEQPACKET, 0); }
void unixseq_pair(subject *s) { pair(s, SOCK_SEQPACKET); }
void unixseq_data(subject *s) { pair(s, SOCK_SEQPACKET), fill(s); }
void unixseq_closed(subject *s) { pair(s, SOCK_SEQPACKET), leave(s); }
void unixseq_listen(subject *s) { s->fd = unix_at(SOCK_SEQPACKET, "sock"), must(listen(s->fd, 2), "listen"); }

static int inet_at(int family, int type, struct sockaddr_storage *a, socklen_t *n)
{
	int fd = sock(family, type, 0);
	memset(a, 0, sizeof *a);
	a->ss_family = family;
	*n = family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
	if (family == AF_INET)
		((struct sockaddr_in *)a)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	else
		((struct sockaddr_in6 *)a)->sin6_addr = in6addr_loopback;
	must(bind(fd, (struct sockaddr *)a, *n), "bind");
	getsockname(fd, (struct sockaddr *)a, n);
	return fd;
}

static void ready(int fd, int events)
{
	struct pollfd p = {fd, events, 0};
	poll(&p, 1, 2000);
}

static void tcp_to(subject *s, int family, int accepted)
{
	struct sockaddr_storage a;
	socklen_t n;
	int listener = inet_at(family, SOCK_STREAM, &a, &n);
	must(listen(listener, 5), "listen");
	s->fd = sock(family, SOCK_STREAM, 0);
	if (connect(s->fd, (struct sockaddr *)&a, n) < 0 && errno != EINPROGRESS)
		must(-1, "connect");
	ready(listener, POLLIN);
	s->peer = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
	must(s->peer, "accept");
	ready(s->fd, POLLOUT);
	close(listener);
	if (accepted) {
		int fd = s->fd;
		s->fd = s->peer, s->peer = fd;
	}
}

void tcp_new(subject *s) { s->fd = sock(AF_INET, SOCK_STREAM, 0); }

static void tcp_bound_to(subject *s, int family)
{
	struct sockaddr_storage a;
	socklen_t n;
	s->fd = inet_at(family, SOCK_STREAM, &a, &n);
}

void tcp_bound(subject *s) { tcp_bound_to(s, AF_INET); }
void tcp_listen(subject *s) { tcp_bound(s), must(listen(s->fd, 2), "listen"); }

void tcp_listen_waiting(subject *s)
{
	struct sockaddr_storage a;
	socklen_t n = sizeof a;
	tcp_listen(s);
	getsockname(s->fd, (struct sockaddr *)&a, &n);
	s->peer = sock(AF_INET, SOCK_STREAM, 0);
	connect(s->peer, (struct sockaddr *)&a, n);
	ready(s->fd, POLLIN);
}

void tcp_listen_shut(subject *s) { tcp_listen(s), shutdown(s->fd, SHUT_RDWR); }
void tcp_connected(subject *s) { tcp_to(s, AF_INET, 0); }
void tcp_accepted(subject *s) { tcp_to(s, AF_INET, 1); }
void tcp_data(subject *s) { tcp_connected(s), fill(s), ready(s->fd, POLLIN); }
void tcp_closed(subject *s) { tcp_connected(s), leave(s), ready(s->fd, POLLIN); }
void tcp_shut_write(subject *s) { tcp_connected(s), shutdown(s->fd, SHUT_WR), ready(s->peer, POLLIN); }
void tcp_shut_read(subject *s) { tcp_connected(s), shutdown(s->fd, SHUT_RD); }
void tcp_shut_both(subject *s) { tcp_connected(s), shutdown(s->fd, SHUT_RDWR), ready(s->peer, POLLIN); }

void tcp_last_ack(subject *s)
{
	tcp_connected(s);
	shutdown(s->peer, SHUT_WR);
	ready(s->fd, POLLIN);
	shutdown(s->fd, SHUT_WR);
	ready(s->peer, POLLIN);
}

void tcp_reset(subject *s)
{
	struct linger l = {1, 0};
	tcp_connected(s);
	setsockopt(s->peer, SOL_SOCKET, SO_LINGER, &l, sizeof l);
	leave(s);
	ready(s->fd, POLLIN);
}

// tcp_peer_gone has had its data answered with a reset, and has read the error.
void tcp_peer_gone(subject *s)
{
	int e;
	socklen_t n = sizeof e;
	tcp_reset(s);
	getsockopt(s->fd, SOL_SOCKET, SO_ERROR, &e, &n);
}

void tcp_refused(subject *s)
{
	struct sockaddr_storage a;
	socklen_t n;
	int other = inet_at(AF_INET, SOCK_STREAM, &a, &n);
	s->fd = sock(AF_INET, SOCK_STREAM, 0);
	connect(s->fd, (struct sockaddr *)&a, n);
	ready(s->fd, POLLIN);
	close(other);
}

void tcp_disconnected(subject *s)
{
	struct sockaddr a = {.sa_family = AF_UNSPEC};
	tcp_connected(s);
	must(connect(s->fd, &a, sizeof a), "disconnect");
}

void tcp6_new(subject *s) { s->fd = sock(AF_INET6, SOCK_STREAM, 0); }
void tcp6_listen(subject *s) { tcp_bound_to(s, AF_INET6), must(listen(s->fd, 2), "listen"); }
void tcp6_connected(subject *s) { tcp_to(s, AF_INET6, 0); }

static void mapped(subject *s, int type)
{
	struct sockaddr_storage a;
	struct sockaddr_in6 six = {.sin6_family = AF_INET6};
	socklen_t n;
	s->more = inet_at(AF_INET, type, &a, &n);
	if (type == SOCK_STREAM)
		must(listen(s->more, 2), "listen");
	s->fd = sock(AF_INET6, type, 0);
	six.sin6_port = ((struct sockaddr_in *)&a)->sin_port;
	inet_pton(AF_INET6, "::ffff:127.0.0.1", &six.sin6_addr);
	if (connect(s->fd, (struct sockaddr *)&six, sizeof six) < 0 && errno != EINPROGRESS)
		must(-1, "connect");
	ready(s->fd, POLLOUT);
}

void tcp6_mapped(subject *s) { mapped(s, SOCK_STREAM); }

static void udp_to(subject *s, int family, int connected)
{
	struct sockaddr_storage a, b;
	socklen_t n;
	s->fd = inet_at(family, SOCK_DGRAM, &a, &n);
	if (!connected)
		return;
	s->peer = inet_at(family, SOCK_DGRAM, &b, &n);
	must(connect(s->fd, (struct sockaddr *)&b, n), "connect");
	must(connect(s->peer, (struct sockaddr *)&a, n), "connect");
}

void udp_new(subject *s) { s->fd = sock(AF_INET, SOCK_DGRAM, 0); }
void udp_bound(subject *s) { udp_to(s, AF_INET, 0); }
void udp_connected(subject *s) { udp_to(s, AF_INET, 1); }
void udp_data(subject *s) { udp_connected(s), fill(s), ready(s->fd, POLLIN); }
void udp_shut(subject *s) { udp_connected(s), shutdown(s->fd, SHUT_RDWR); }

void udp_refused(subject *s)
{
	udp_connected(s);
	leave(s);
	must(write(s->fd, "x", 1), "write");
	ready(s->fd, POLLIN);
}

void udp6_new(subject *s) { s->fd = sock(AF_INET6, SOCK_DGRAM, 0); }
void udp6_bound(subject *s) { udp_to(s, AF_INET6, 0); }
void udp6_connected(subject *s) { udp_to(s, AF_INET6, 1); }
void udp6_mapped(subject *s) { mapped(s, SOCK_DGRAM); }

void netlink_new(subject *s) { s->fd = sock(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE); }

void netlink_bound(subject *s)
{
	struct sockaddr_nl a = {.nl_family = AF_NETLINK};
	netlink_new(s);
	must(bind(s->fd, (struct sockaddr *)&a, sizeof a), "bind");
}

void raw_icmp(subject *s) { s->fd = sock(AF_INET, SOCK_RAW, IPPROTO_ICMP); }
void raw_any(subject *s) { s->fd = sock(AF_INET, SOCK_RAW, IPPROTO_RAW); }
void raw6(subject *s) { s->fd = sock(AF_INET6, SOCK_RAW, IPPROTO_ICMPV6); }
void ping_new(subject *s) { s->fd = sock(AF_INET, SOCK_DGRAM, IPPROTO_ICMP); }
void packet_new(subject *s) { s->fd = sock(AF_PACKET, SOCK_RAW, htons(ETH_P_ALL)); }
