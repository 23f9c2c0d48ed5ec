// Program sockdiag tests NETLINK_SOCK_DIAG: what it tells of this program's own sockets.
#include "gt.h"

#include <arpa/inet.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/un.h>

enum { every = 0xffe };

static struct sockets {
	const char *name;
	int fd;
	unsigned ino;
} known[32];
static int count;

static int keep(const char *name, int fd)
{
	struct stat st;
	must(fstat(fd, &st), name);
	known[count++] = (struct sockets){name, fd, (unsigned)st.st_ino};
	return fd;
}

static const char *who(unsigned ino)
{
	for (int i = 0; i < count; i++)
		if (known[i].ino == ino)
			return known[i].name;
	return NULL;
}

static char buffer[1 << 16];

// ask sends a request and returns its error, or that of the dump.
static int ask(int type, int flags, const void *req, size_t n, const void *more, size_t m, void (*see)(struct nlmsghdr *))
{
	struct {
		struct nlmsghdr h;
		char body[1024];
	} q = {.h = {(unsigned)(sizeof q.h + n + m), (unsigned short)type, (unsigned short)(NLM_F_REQUEST | flags), 7, 0}};
	memcpy(q.body, req, n);
	if (m)
		memcpy(q.body + n, more, m);
	int s = must(socket(AF_NETLINK, SOCK_RAW, NETLINK_SOCK_DIAG), "socket"), outcome = 1;
	must(send(s, &q, q.h.nlmsg_len, 0), "send");
	while (outcome == 1) {
		int left = (int)must(recv(s, buffer, sizeof buffer, 0), "recv");
		for (struct nlmsghdr *h = (void *)buffer; NLMSG_OK(h, (unsigned)left) && outcome == 1; h = NLMSG_NEXT(h, left)) {
			if (h->nlmsg_type == NLMSG_ERROR || h->nlmsg_type == NLMSG_DONE)
				outcome = *(int *)NLMSG_DATA(h);
			else if (see)
				see(h);
			if (h->nlmsg_type == SOCK_DIAG_BY_FAMILY && !(flags & NLM_F_DUMP))
				outcome = 0;
		}
	}
	close(s);
	return -outcome;
}

static char lines[64][200];
static int seen;

static int order(const void *x, const void *y) { return strcmp(x, y); }

static void answer(const char *what, int error)
{
	say("%s: %s", what, name_of(error));
	qsort(lines, (size_t)seen, sizeof *lines, order);
	for (int i = 0; i < seen; i++)
		say("  %s", lines[i]);
	seen = 0;
}

// ports: one of this program's sockets stands for each.
static int number(unsigned port)
{
	for (int i = 0; i < count; i++) {
		struct sockaddr_in6 a;
		socklen_t n = sizeof a;
		if (getsockname(known[i].fd, (void *)&a, &n) == 0 && a.sin6_family != AF_UNIX && ntohs(a.sin6_port) == port)
			return i;
	}
	return -1;
}

static void inet(struct nlmsghdr *h)
{
	struct inet_diag_msg *d = NLMSG_DATA(h);
	const char *name = who(d->idiag_inode);
	char src[64], dst[64];
	if (!name || seen == 64)
		return;
	unsigned long cookie = 0;
	socklen_t n = sizeof cookie;
	for (int i = 0; i < count; i++)
		if (known[i].ino == d->idiag_inode)
			getsockopt(known[i].fd, SOL_SOCKET, SO_COOKIE, &cookie, &n);
	char *p = lines[seen++];
	inet_ntop(d->idiag_family, d->id.idiag_src, src, sizeof src);
	inet_ntop(d->idiag_family, d->id.idiag_dst, dst, sizeof dst);
	p += sprintf(p, "%s: family %d state %d %s port of %d, %s port of %d, if %u, queues %u %u, uid %u, cookie %d, flags %x:", name,
	             d->idiag_family, d->idiag_state, src, number(ntohs(d->id.idiag_sport)), dst, number(ntohs(d->id.idiag_dport)),
	             d->id.idiag_if, d->idiag_rqueue, d->idiag_wqueue, d->idiag_uid,
	             d->id.idiag_cookie[0] == (unsigned)cookie && d->id.idiag_cookie[1] == cookie >> 32, h->nlmsg_flags);
	int left = (int)NLMSG_PAYLOAD(h, sizeof *d);
	for (struct rtattr *a = (void *)(d + 1); RTA_OK(a, left); a = RTA_NEXT(a, left))
		if (a->rta_type == INET_DIAG_SHUTDOWN || a->rta_type == INET_DIAG_SKV6ONLY || a->rta_type == INET_DIAG_PROTOCOL)
			p += sprintf(p, " %d=%d", a->rta_type, *(unsigned char *)RTA_DATA(a));
}

static void local(struct nlmsghdr *h)
{
	struct unix_diag_msg *d = NLMSG_DATA(h);
	const char *name = who(d->udiag_ino);
	if (!name || seen == 64)
		return;
	char *p = lines[seen++];
	p += sprintf(p, "%s: type %d state %d:", name, d->udiag_type, d->udiag_state);
	int left = (int)NLMSG_PAYLOAD(h, sizeof *d);
	for (struct rtattr *a = (void *)(d + 1); RTA_OK(a, left); a = RTA_NEXT(a, left)) {
		unsigned *u = RTA_DATA(a);
		struct stat st;
		switch (a->rta_type) {
		case UNIX_DIAG_NAME:
			p += sprintf(p, " name %d %.*s", (int)RTA_PAYLOAD(a), (int)RTA_PAYLOAD(a) - 1, (char *)u + 1);
			break;
		case UNIX_DIAG_VFS:
			must(stat("sockdiag.name", &st), "stat");
			p += sprintf(p, " inode %d", u[0] == (unsigned)st.st_ino);
			break;
		case UNIX_DIAG_PEER:
			p += sprintf(p, " peer %s", who(u[0]) ? who(u[0]) : "?");
			break;
		case UNIX_DIAG_ICONS:
			p += sprintf(p, " pending %d", (int)RTA_PAYLOAD(a) / 4);
			for (int i = 0; i < (int)RTA_PAYLOAD(a) / 4; i++)
				p += sprintf(p, " %s", who(u[i]) ? who(u[i]) : "?");
			break;
		case UNIX_DIAG_RQLEN:
			p += sprintf(p, " queues %u %d", u[0], u[1] != 0);
			break;
		case UNIX_DIAG_SHUTDOWN:
			p += sprintf(p, " shut %d", *(unsigned char *)u);
			break;
		case UNIX_DIAG_UID:
			p += sprintf(p, " uid %u", u[0]);
		}
	}
}

static void bound(int fd, int family)
{
	struct sockaddr_in6 a = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
	struct sockaddr_in b = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	must(family == AF_INET ? bind(fd, (void *)&b, sizeof b) : bind(fd, (void *)&a, sizeof a), "bind");
}

static void joined(int fd, int to)
{
	struct sockaddr_in6 a;
	socklen_t n = sizeof a;
	getsockname(to, (void *)&a, &n);
	must(connect(fd, (void *)&a, n), "connect");
}

static int listener;

static void open_inet(int family)
{
	keep("fresh", socket(family, SOCK_STREAM, 0));
	bound(keep("bound", socket(family, SOCK_STREAM, 0)), family);
	listener = keep("listening", socket(family, SOCK_STREAM, 0));
	bound(listener, family);
	must(listen(listener, 7), "listen");
	for (int i = 0; i < 3; i++) {
		static const char *const names[][2] = {{"client", "server"}, {"half closed", "told"}, {"reader", "writer"}};
		int c = keep(names[i][0], socket(family, SOCK_STREAM, 0));
		joined(c, listener);
		int s = keep(names[i][1], accept(listener, NULL, NULL));
		if (i == 1) {
			shutdown(c, SHUT_WR);
			must(read(s, &(char){0}, 1), "read"); // what is queued counts the FIN until then
		}
		if (i == 2)
			must(write(s, "hello", 5), "write");
	}
	joined(keep("waits", socket(family, SOCK_STREAM, 0)), listener);
	keep("udp fresh", socket(family, SOCK_DGRAM, 0));
	int u = keep("udp bound", socket(family, SOCK_DGRAM, 0));
	bound(u, family);
	joined(keep("udp connected", socket(family, SOCK_DGRAM, 0)), u);
	sleep_ms(50);
}

static struct inet_diag_req_v2 request(int family, int protocol, unsigned states)
{
	struct inet_diag_req_v2 r = {(unsigned char)family, (unsigned char)protocol, 0, 0, states, {0}};
	r.id.idiag_cookie[0] = r.id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
	return r;
}

static void dump(const char *what, int family, int protocol, unsigned states)
{
	struct inet_diag_req_v2 r = request(family, protocol, states);
	answer(what, ask(SOCK_DIAG_BY_FAMILY, NLM_F_DUMP, &r, sizeof r, NULL, 0, inet));
}

static void all_of(int family)
{
	open_inet(family);
	dump("tcp", family, IPPROTO_TCP, every);
	dump("tcp that listens", family, IPPROTO_TCP, 1 << TCP_LISTEN);
	dump("tcp that is connected", family, IPPROTO_TCP, 1 << TCP_ESTABLISHED);
	dump("tcp in other states", family, IPPROTO_TCP, 1 << TCP_CLOSE | 1 << TCP_FIN_WAIT2 | 1 << TCP_CLOSE_WAIT);
	dump("udp", family, IPPROTO_UDP, every);
	dump("udp that is connected", family, IPPROTO_UDP, 1 << TCP_ESTABLISHED);
	dump("no protocol", family, 200, every);
}

TEST(four, "sockets of IPv4") { all_of(AF_INET); }

TEST(six, "sockets of IPv6") { all_of(AF_INET6); }

static unsigned short port_of(int fd)
{
	struct sockaddr_in a;
	socklen_t n = sizeof a;
	getsockname(fd, (void *)&a, &n);
	return a.sin_port;
}

TEST(one, "one socket")
{
	open_inet(AF_INET);
	int c = known[3].fd;
	struct inet_diag_req_v2 r = request(AF_INET, IPPROTO_TCP, 0);
	r.id.idiag_sport = port_of(c), r.id.idiag_dport = port_of(listener);
	r.id.idiag_src[0] = r.id.idiag_dst[0] = htonl(INADDR_LOOPBACK);
	answer("a connection", ask(SOCK_DIAG_BY_FAMILY, 0, &r, sizeof r, NULL, 0, inet));
	r.id.idiag_cookie[0] = 0xfffffff0;
	answer("another cookie", ask(SOCK_DIAG_BY_FAMILY, 0, &r, sizeof r, NULL, 0, inet));
	r = request(AF_INET, IPPROTO_TCP, 0);
	r.id.idiag_sport = port_of(listener), r.id.idiag_src[0] = htonl(INADDR_LOOPBACK);
	answer("a listener", ask(SOCK_DIAG_BY_FAMILY, 0, &r, sizeof r, NULL, 0, inet));
	r.id.idiag_sport = htons(1);
	answer("none", ask(SOCK_DIAG_BY_FAMILY, 0, &r, sizeof r, NULL, 0, inet));
}

static void filter(const char *what, const void *code, size_t n)
{
	struct {
		struct rtattr a;
		char b[256];
	} x = {{(unsigned short)(sizeof x.a + n), INET_DIAG_REQ_BYTECODE}, {0}};
	memcpy(x.b, code, n);
	struct inet_diag_req_v2 r = request(AF_INET, IPPROTO_TCP, every);
	answer(what, ask(SOCK_DIAG_BY_FAMILY, NLM_F_DUMP | NLM_F_ACK, &r, sizeof r, &x, (sizeof x.a + n + 3) & ~3ul, inet));
}

TEST(filters, "filters of a dump")
{
	open_inet(AF_INET);
	unsigned short port = ntohs(port_of(listener));
	static const unsigned char codes[] = {INET_DIAG_BC_S_GE, INET_DIAG_BC_S_LE, INET_DIAG_BC_D_GE, INET_DIAG_BC_D_LE};
	for (int i = 0; i < 4; i++)
		for (int high = 0; high < 2; high++) {
			struct inet_diag_bc_op bound[] = {{codes[i], 8, 12}, {0, 0, high ? 65535 : 1}};
			filter(high ? "port 65535" : "port 1", bound, sizeof bound);
		}
	struct inet_diag_bc_op same[] = {{INET_DIAG_BC_S_GE, 8, 20}, {0, 0, port}, {INET_DIAG_BC_S_LE, 8, 12}, {0, 0, port}};
	filter("the listener's port", same, sizeof same);
	struct inet_diag_bc_op equal[] = {{INET_DIAG_BC_D_EQ, 8, 12}, {0, 0, port}};
	filter("to the listener's port", equal, sizeof equal);
	struct inet_diag_bc_op not[] = {{INET_DIAG_BC_D_EQ, 8, 12}, {0, 0, port}, {INET_DIAG_BC_JMP, 4, 8}};
	filter("not to the listener's port", not, sizeof not);
	struct {
		struct inet_diag_bc_op op;
		struct inet_diag_hostcond cond;
		unsigned addr;
	} host = {{INET_DIAG_BC_S_COND, sizeof host, sizeof host + 4}, {AF_INET, 8, -1}, htonl(0x7f000000)};
	filter("from 127/8", &host, sizeof host);
	host.addr = htonl(0x7e000000), host.cond.prefix_len = 7;
	filter("from 126/7", &host, sizeof host);
	host.cond.prefix_len = 8;
	filter("from 126/8", &host, sizeof host);
	host.cond.port = port, host.addr = htonl(INADDR_LOOPBACK), host.cond.prefix_len = 32;
	filter("from a port of 127.0.0.1", &host, sizeof host);
	host.cond.prefix_len = 33;
	filter("a prefix too long", &host, sizeof host);
	host.cond.family = 99;
	filter("another family", &host, sizeof host);
	struct inet_diag_bc_op bad[][2] = {{{99, 4, 8}, {0, 4, 8}},   {{INET_DIAG_BC_S_GE, 4, 8}, {0, 4, 8}},
	                                   {{INET_DIAG_BC_S_GE, 8, 4}, {0, 0, 1}}, {{INET_DIAG_BC_JMP, 4, 0}, {0, 4, 8}},
	                                   {{INET_DIAG_BC_JMP, 4, 6}, {0, 4, 8}},  {{INET_DIAG_BC_JMP, 0, 4}, {0, 4, 8}},
	                                   {{INET_DIAG_BC_JMP, 4, 4}, {0, 12, 8}}, {{INET_DIAG_BC_JMP, 4, 100}, {0, 4, 8}}};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		filter("bad code", bad[i], sizeof bad[i]);
}

TEST(names, "sockets of AF_UNIX")
{
	int p[2];
	static const int types[] = {SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET};
	static const char *const ends[][2] = {{"stream", "stream's peer"}, {"datagram", "datagram's peer"}, {"packets", "packets' peer"}};
	unlink("sockdiag.name");
	struct sockaddr_un a = {.sun_family = AF_UNIX, .sun_path = "sockdiag.name"}, b = {.sun_family = AF_UNIX, .sun_path = "\0diag of an abstract name"};
	for (int i = 0; i < 3; i++) {
		must(socketpair(AF_UNIX, types[i], 0, p), "socketpair");
		keep(ends[i][0], p[0]);
		keep(ends[i][1], p[1]);
		must(write(p[0], "four", 4), "write");
	}
	shutdown(known[0].fd, SHUT_WR);
	shutdown(known[5].fd, SHUT_RD);
	int l = keep("named", socket(AF_UNIX, SOCK_STREAM, 0));
	must(bind(l, (void *)&a, sizeof a), "bind");
	listen(l, 3);
	must(connect(keep("waits", socket(AF_UNIX, SOCK_STREAM, 0)), (void *)&a, sizeof a), "connect");
	must(bind(keep("abstract", socket(AF_UNIX, SOCK_DGRAM, 0)), (void *)&b, 28), "bind");
	keep("fresh", socket(AF_UNIX, SOCK_STREAM, 0));
	struct unix_diag_req r = {AF_UNIX, 0, 0, every, 0, 0, {0, 0}};
	for (unsigned show = 1; show <= 0x40; show <<= 1) {
		if (show == UDIAG_SHOW_MEMINFO || show == UDIAG_SHOW_RQLEN)
			continue;
		r.udiag_show = show;
		answer("show", ask(SOCK_DIAG_BY_FAMILY, NLM_F_DUMP, &r, sizeof r, NULL, 0, local));
	}
	r.udiag_states = 1 << TCP_LISTEN, r.udiag_show = UDIAG_SHOW_NAME | UDIAG_SHOW_RQLEN;
	answer("listeners", ask(SOCK_DIAG_BY_FAMILY, NLM_F_DUMP, &r, sizeof r, NULL, 0, local));
	r.udiag_ino = known[0].ino, r.udiag_show = UDIAG_SHOW_PEER;
	r.udiag_cookie[0] = r.udiag_cookie[1] = INET_DIAG_NOCOOKIE;
	answer("one", ask(SOCK_DIAG_BY_FAMILY, 0, &r, sizeof r, NULL, 0, local));
	r.udiag_cookie[0] = 0xfffffff0;
	answer("another cookie", ask(SOCK_DIAG_BY_FAMILY, 0, &r, sizeof r, NULL, 0, local));
	r.udiag_ino = 0;
	answer("no number", ask(SOCK_DIAG_BY_FAMILY, 0, &r, sizeof r, NULL, 0, local));
	unlink("sockdiag.name");
}

TEST(refused, "requests that are refused")
{
	struct inet_diag_req_v2 r = request(AF_INET, IPPROTO_TCP, every);
	answer("short", ask(SOCK_DIAG_BY_FAMILY, NLM_F_DUMP, &r, 40, NULL, 0, NULL));
	answer("one byte", ask(SOCK_DIAG_BY_FAMILY, NLM_F_DUMP, &r, 1, NULL, 0, NULL));
	struct unix_diag_req u = {AF_UNIX, 0, 0, every, 0, 0, {0, 0}};
	answer("short unix", ask(SOCK_DIAG_BY_FAMILY, NLM_F_DUMP, &u, 20, NULL, 0, NULL));
	answer("type 22", ask(22, NLM_F_DUMP, &r, sizeof r, NULL, 0, NULL));
	r.sdiag_family = 3;
	answer("family 3", ask(SOCK_DIAG_BY_FAMILY, NLM_F_DUMP, &r, sizeof r, NULL, 0, NULL));
	r.sdiag_family = 99;
	answer("family 99", ask(SOCK_DIAG_BY_FAMILY, NLM_F_DUMP, &r, sizeof r, NULL, 0, NULL));
	answer("an acknowledgement without a request", ask(SOCK_DIAG_BY_FAMILY, NLM_F_ACK, &r, sizeof r, NULL, 0, NULL));
}
