// Program sockdestroy tests what NETLINK_SOCK_DIAG tells beyond addresses, that it ends
// connections, and sockets of AF_NETLINK and AF_PACKET.
#include "gt.h"

#include <arpa/inet.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/netlink_diag.h>
#include <linux/packet_diag.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <netpacket/packet.h>
#include <sys/socket.h>

#ifndef SOCK_DESTROY
#define SOCK_DESTROY 21
#endif

static unsigned long ino_of(int fd)
{
	struct stat st;
	must(fstat(fd, &st), "fstat");
	return st.st_ino;
}

// ask sends a request and hands each answer to fn; it returns the error.
static int ask(int type, int flags, void *body, int n, void (*fn)(struct nlmsghdr *))
{
	static char reply[32768];
	char b[256] = {0};
	struct nlmsghdr *h = (void *)b;
	int s = must(socket(AF_NETLINK, SOCK_DGRAM, NETLINK_SOCK_DIAG), "netlink");
	struct sockaddr_nl to = {AF_NETLINK};
	h->nlmsg_len = NLMSG_LENGTH(n), h->nlmsg_type = type, h->nlmsg_flags = NLM_F_REQUEST | flags;
	memcpy(NLMSG_DATA(h), body, n);
	must(sendto(s, b, h->nlmsg_len, 0, (void *)&to, sizeof to), "send");
	for (;;) {
		int left = must(recv(s, reply, sizeof reply, 0), "recv");
		for (struct nlmsghdr *r = (void *)reply; NLMSG_OK(r, left); r = NLMSG_NEXT(r, left)) {
			if (r->nlmsg_type == NLMSG_DONE)
				return close(s), -*(int *)NLMSG_DATA(r);
			if (r->nlmsg_type == NLMSG_ERROR)
				return close(s), -((struct nlmsgerr *)NLMSG_DATA(r))->error;
			if (fn)
				fn(r);
			if (!(flags & NLM_F_DUMP) && !(flags & NLM_F_ACK))
				return close(s), 0;
		}
	}
}

static void detail(struct nlmsghdr *h)
{
	struct inet_diag_msg *d = NLMSG_DATA(h);
	int left = (int)NLMSG_PAYLOAD(h, sizeof *d);
	say("state %d", d->idiag_state);
	for (struct rtattr *a = (void *)(d + 1); RTA_OK(a, left); a = RTA_NEXT(a, left)) {
		unsigned char *c = RTA_DATA(a);
		unsigned *u = RTA_DATA(a);
		struct tcp_info *t = RTA_DATA(a);
		switch (a->rta_type) {
		case INET_DIAG_MEMINFO:
			say("meminfo: %d bytes", (int)RTA_PAYLOAD(a));
			break;
		case INET_DIAG_SKMEMINFO:
			say("skmeminfo: %d bytes, receive buffer %d", (int)RTA_PAYLOAD(a), u[SK_MEMINFO_RCVBUF] != 0);
			break;
		case INET_DIAG_CONG:
			say("control: %d bytes", (int)RTA_PAYLOAD(a) > 0);
			break;
		case INET_DIAG_TOS:
		case INET_DIAG_TCLASS:
		case INET_DIAG_SHUTDOWN:
			say("%d: %d", a->rta_type, *c);
			break;
		case INET_DIAG_MARK:
		case INET_DIAG_CLASS_ID:
			say("%d: %d", a->rta_type, *u);
			break;
		case INET_DIAG_SOCKOPT:
			say("options %x %x", c[0], c[1]);
			break;
		case INET_DIAG_INFO:
			say("info: state %d, retransmits %d, mss %d, sent %llu", t->tcpi_state, t->tcpi_retransmits, t->tcpi_snd_mss > 500,
			    (int)RTA_PAYLOAD(a) >= 208 ? *(unsigned long long *)(c + 200) : 0ull);
		}
	}
}

struct link {
	int listener, a, b;
	struct sockaddr_in near, far; // of a
};

static struct link connected(void)
{
	struct link l = {0};
	struct sockaddr_in at = {AF_INET, 0, {htonl(INADDR_LOOPBACK)}};
	socklen_t n = sizeof at;
	l.listener = must(socket(AF_INET, SOCK_STREAM, 0), "socket");
	must(bind(l.listener, (void *)&at, n), "bind");
	must(listen(l.listener, 5), "listen");
	getsockname(l.listener, (void *)&l.far, &n);
	l.a = must(socket(AF_INET, SOCK_STREAM, 0), "socket");
	must(connect(l.a, (void *)&l.far, n), "connect");
	l.b = must(accept(l.listener, 0, 0), "accept");
	getsockname(l.a, (void *)&l.near, &n);
	return l;
}

static struct inet_diag_req_v2 about(struct sockaddr_in *near, struct sockaddr_in *far, int protocol, int ext)
{
	struct inet_diag_req_v2 r = {.sdiag_family = AF_INET, .sdiag_protocol = protocol, .idiag_ext = ext, .idiag_states = -1};
	r.id.idiag_sport = near->sin_port, r.id.idiag_src[0] = near->sin_addr.s_addr;
	if (far)
		r.id.idiag_dport = far->sin_port, r.id.idiag_dst[0] = far->sin_addr.s_addr;
	r.id.idiag_cookie[0] = r.id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
	return r;
}

TEST(details, "what is told of a connection")
{
	struct link l = connected();
	int v = 0x10;
	setsockopt(l.a, IPPROTO_IP, IP_TOS, &v, 4);
	v = 7;
	err("mark", setsockopt(l.a, SOL_SOCKET, SO_MARK, &v, 4));
	v = 3;
	setsockopt(l.a, SOL_SOCKET, SO_PRIORITY, &v, 4);
	v = 1;
	setsockopt(l.a, IPPROTO_IP, IP_RECVERR, &v, 4);
	setsockopt(l.a, IPPROTO_IP, IP_FREEBIND, &v, 4);
	setsockopt(l.a, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &v, 4);
	must(send(l.a, "12345", 5, 0), "send");
	struct inet_diag_req_v2 r = about(&l.near, &l.far, IPPROTO_TCP, 0);
	say("nothing asked for: %s", name_of(ask(SOCK_DIAG_BY_FAMILY, 0, &r, sizeof r, detail)));
	for (int bit = 0; bit < 8; bit++) {
		r.idiag_ext = 1 << bit;
		say("bit %d: %s", bit, name_of(ask(SOCK_DIAG_BY_FAMILY, 0, &r, sizeof r, detail)));
	}
	r = about(&l.far, 0, IPPROTO_TCP, 0xff);
	say("the listener: %s", name_of(ask(SOCK_DIAG_BY_FAMILY, 0, &r, sizeof r, detail)));
}

static void io(const char *what, int fd)
{
	char c;
	struct pollfd p = {fd, POLLIN | POLLOUT};
	int v = 0;
	socklen_t n = sizeof v;
	poll(&p, 1, 1000);
	say("%s: events %x", what, p.revents);
	getsockopt(fd, SOL_SOCKET, SO_ERROR, &v, &n);
	say("  SO_ERROR %s", name_of(v));
	num("  recv", recv(fd, &c, 1, MSG_DONTWAIT));
	num("  send", send(fd, "x", 1, MSG_DONTWAIT | MSG_NOSIGNAL));
}

TEST(destroy, "SOCK_DESTROY ends a connection")
{
	struct link l = connected();
	struct inet_diag_req_v2 r = about(&l.near, &l.far, IPPROTO_TCP, 0);
	int st = wait_for(FORK(must(setuid(1000), "setuid"); say("as a user: %s", name_of(ask(SOCK_DESTROY, NLM_F_ACK, &r, sizeof r, 0)))));
	status("user", st);
	say("destroy: %s", name_of(ask(SOCK_DESTROY, NLM_F_ACK, &r, sizeof r, 0)));
	io("this end", l.a);
	io("the other", l.b);
	say("again: %s", name_of(ask(SOCK_DESTROY, NLM_F_ACK, &r, sizeof r, 0)));
	struct sockaddr_in none = {AF_INET, htons(9), {htonl(INADDR_LOOPBACK)}};
	r = about(&none, &l.far, IPPROTO_TCP, 0);
	say("none: %s", name_of(ask(SOCK_DESTROY, NLM_F_ACK, &r, sizeof r, 0)));
}

TEST(destroylistener, "SOCK_DESTROY ends a listener")
{
	struct link l = connected();
	struct inet_diag_req_v2 r = about(&l.far, 0, IPPROTO_TCP, 0);
	say("destroy: %s", name_of(ask(SOCK_DESTROY, NLM_F_ACK, &r, sizeof r, 0)));
	num("accept", accept4(l.listener, 0, 0, SOCK_NONBLOCK));
	int s = socket(AF_INET, SOCK_STREAM, 0);
	err("connect", connect(s, (void *)&l.far, sizeof l.far));
	num("the connection", send(l.a, "x", 1, 0));
}

TEST(destroyblocked, "SOCK_DESTROY wakes who reads")
{
	struct link l = connected();
	struct inet_diag_req_v2 r = about(&l.near, &l.far, IPPROTO_TCP, 0);
	char c;
	pid_t pid = FORK(_exit(recv(l.a, &c, 1, 0) == -1 && errno == ECONNABORTED ? 7 : 1));
	settle(pid);
	say("destroy: %s", name_of(ask(SOCK_DESTROY, NLM_F_ACK, &r, sizeof r, 0)));
	status("reader", wait_for(pid));
}

TEST(destroyudp, "SOCK_DESTROY ends what UDP sockets do")
{
	struct sockaddr_in at = {AF_INET, 0, {htonl(INADDR_LOOPBACK)}};
	socklen_t n = sizeof at;
	int s = socket(AF_INET, SOCK_DGRAM, 0), v = 0;
	must(bind(s, (void *)&at, n), "bind");
	getsockname(s, (void *)&at, &n);
	struct sockaddr_in none = {AF_INET};
	struct inet_diag_req_v2 r = about(&none, &at, IPPROTO_UDP, 0);
	say("the other way round: %s", name_of(ask(SOCK_DESTROY, NLM_F_ACK, &r, sizeof r, 0)));
	r = about(&at, 0, IPPROTO_UDP, 0);
	say("destroy: %s", name_of(ask(SOCK_DESTROY, NLM_F_ACK, &r, sizeof r, 0)));
	n = sizeof v;
	getsockopt(s, SOL_SOCKET, SO_ERROR, &v, &n);
	say("error %s", name_of(v));
}

static unsigned long wanted; // its number; 0 once it was found: Linux lists members of groups twice

static void netlink_socket(struct nlmsghdr *h)
{
	struct netlink_diag_msg *d = NLMSG_DATA(h);
	if (d->ndiag_ino != wanted)
		return;
	wanted = 0;
	say("family %d type %d protocol %d state %d", d->ndiag_family, d->ndiag_type, d->ndiag_protocol, d->ndiag_state);
	int left = (int)NLMSG_PAYLOAD(h, sizeof *d);
	for (struct rtattr *a = (void *)(d + 1); RTA_OK(a, left); a = RTA_NEXT(a, left)) {
		unsigned *u = RTA_DATA(a);
		if (a->rta_type == NETLINK_DIAG_GROUPS)
			say("groups %x", *u);
		if (a->rta_type == NETLINK_DIAG_MEMINFO)
			say("meminfo: %d bytes, %d waiting", (int)RTA_PAYLOAD(a), u[0] != 0);
	}
}

TEST(netlinks, "sockets of AF_NETLINK")
{
	struct sockaddr_nl at = {AF_NETLINK, .nl_groups = 1};
	int s = must(socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE), "socket");
	must(bind(s, (void *)&at, sizeof at), "bind");
	wanted = ino_of(s);
	struct netlink_diag_req r = {.sdiag_family = AF_NETLINK, .sdiag_protocol = NDIAG_PROTO_ALL, .ndiag_show = NDIAG_SHOW_GROUPS | NDIAG_SHOW_MEMINFO};
	say("all: %s", name_of(ask(SOCK_DIAG_BY_FAMILY, NLM_F_DUMP, &r, sizeof r, netlink_socket)));
	r.sdiag_protocol = NETLINK_ROUTE, r.ndiag_show = 0, wanted = ino_of(s);
	say("routes: %s", name_of(ask(SOCK_DIAG_BY_FAMILY, NLM_F_DUMP, &r, sizeof r, netlink_socket)));
	wanted = ino_of(s), r.sdiag_protocol = NETLINK_KOBJECT_UEVENT;
	say("events: %s", name_of(ask(SOCK_DIAG_BY_FAMILY, NLM_F_DUMP, &r, sizeof r, netlink_socket)));
	r.sdiag_protocol = NETLINK_ROUTE;
	say("one: %s", name_of(ask(SOCK_DIAG_BY_FAMILY, NLM_F_ACK, &r, sizeof r, netlink_socket)));
	say("short: %s", name_of(ask(SOCK_DIAG_BY_FAMILY, NLM_F_DUMP, &r, 8, netlink_socket)));
}

static void packet_socket(struct nlmsghdr *h)
{
	struct packet_diag_msg *d = NLMSG_DATA(h);
	if (d->pdiag_ino != wanted)
		return;
	say("family %d type %d number %x", d->pdiag_family, d->pdiag_type, d->pdiag_num);
	int left = (int)NLMSG_PAYLOAD(h, sizeof *d);
	for (struct rtattr *a = (void *)(d + 1); RTA_OK(a, left); a = RTA_NEXT(a, left)) {
		unsigned *u = RTA_DATA(a);
		struct packet_diag_info *i = RTA_DATA(a);
		if (a->rta_type == PACKET_DIAG_INFO)
			say("interface %d version %d flags %x", i->pdi_index, i->pdi_version, i->pdi_flags);
		if (a->rta_type == PACKET_DIAG_UID)
			say("uid %d", *u);
		if (a->rta_type == PACKET_DIAG_MEMINFO)
			say("meminfo: %d bytes", (int)RTA_PAYLOAD(a));
	}
}

TEST(packets, "sockets of AF_PACKET")
{
	struct sockaddr_ll at = {AF_PACKET, htons(0x800), 1};
	int s = must(socket(AF_PACKET, SOCK_DGRAM, 0), "socket");
	must(bind(s, (void *)&at, sizeof at), "bind");
	wanted = ino_of(s);
	struct packet_diag_req r = {.sdiag_family = AF_PACKET, .pdiag_show = PACKET_SHOW_INFO | PACKET_SHOW_MEMINFO};
	say("all: %s", name_of(ask(SOCK_DIAG_BY_FAMILY, NLM_F_DUMP, &r, sizeof r, packet_socket)));
	r.pdiag_show = 0;
	say("little: %s", name_of(ask(SOCK_DIAG_BY_FAMILY, NLM_F_DUMP, &r, sizeof r, packet_socket)));
	say("one: %s", name_of(ask(SOCK_DIAG_BY_FAMILY, NLM_F_ACK, &r, sizeof r, packet_socket)));
	r.sdiag_protocol = 1;
	say("protocol: %s", name_of(ask(SOCK_DIAG_BY_FAMILY, NLM_F_DUMP, &r, sizeof r, packet_socket)));
	say("short: %s", name_of(ask(SOCK_DIAG_BY_FAMILY, NLM_F_DUMP, &r, 8, packet_socket)));
}
