// Program netlink tests AF_NETLINK: addresses, requests and answers of NETLINK_ROUTE,
// receives that do not fit.
#include "gt.h"

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sys/socket.h>
#include <sys/uio.h>

static int route(void) { return (int)must(socket(AF_NETLINK, SOCK_RAW | SOCK_NONBLOCK, NETLINK_ROUTE), "socket"); }

static long bind_to(int s, uint32_t pid, uint32_t groups)
{
	struct sockaddr_nl a = {.nl_family = AF_NETLINK, .nl_pid = pid, .nl_groups = groups};
	return bind(s, (void *)&a, sizeof a);
}

static void name(const char *what, int s)
{
	struct sockaddr_nl a = {0};
	socklen_t n = sizeof a;
	if (getsockname(s, (void *)&a, &n) < 0) {
		say("%s: %s", what, name_of(errno));
		return;
	}
	say("%s: length %u family %d port %s groups %#x", what, n, a.nl_family, a.nl_pid == 0 ? "0" : a.nl_pid == getpid() ? "own" : (int)a.nl_pid < 0 ? "made up" : "other", a.nl_groups);
}

struct request {
	struct nlmsghdr h;
	char body[200];
};

static struct request request(int type, int flags, size_t body)
{
	struct request r = {0};
	r.h.nlmsg_len = NLMSG_LENGTH(body);
	r.h.nlmsg_type = type, r.h.nlmsg_flags = flags, r.h.nlmsg_seq = 7;
	return r;
}

// answers reads until nothing is there and prints the kinds of what came, runs of one
// kind once.
static void answers(const char *what, int s)
{
	char b[16384], text[400];
	int at = 0, last = -1, n;
	text[0] = 0;
	while ((n = (int)recv(s, b, sizeof b, 0)) > 0) {
		at += snprintf(text + at, sizeof text - at, " [");
		last = -1;
		for (struct nlmsghdr *h = (void *)b; NLMSG_OK(h, n); h = NLMSG_NEXT(h, n)) {
			int error = h->nlmsg_type == NLMSG_ERROR ? ((struct nlmsgerr *)NLMSG_DATA(h))->error : 0;
			if (h->nlmsg_seq != 7 || h->nlmsg_type != last)
				at += snprintf(text + at, sizeof text - at, "%d/%#x", h->nlmsg_type, h->nlmsg_flags);
			if (h->nlmsg_type == NLMSG_ERROR)
				at += snprintf(text + at, sizeof text - at, ":%s", error ? name_of(-error) : "0");
			if (h->nlmsg_type == NLMSG_DONE)
				at += snprintf(text + at, sizeof text - at, ":len %u", h->nlmsg_len);
			if (h->nlmsg_seq != 7)
				at += snprintf(text + at, sizeof text - at, " seq %u", h->nlmsg_seq);
			if (h->nlmsg_pid != getpid())
				at += snprintf(text + at, sizeof text - at, " port");
			last = h->nlmsg_type;
		}
		at += snprintf(text + at, sizeof text - at, "]");
	}
	say("%s:%s %s", what, text, n == 0 ? "end" : name_of(errno));
}

TEST(making, "socket")
{
	err("stream", socket(AF_NETLINK, SOCK_STREAM, NETLINK_ROUTE));
	err("dgram", socket(AF_NETLINK, SOCK_DGRAM, NETLINK_ROUTE));
	err("seqpacket", socket(AF_NETLINK, SOCK_SEQPACKET, NETLINK_ROUTE));
	err("type 0", socket(AF_NETLINK, 0, NETLINK_ROUTE));
	err("protocol -1", socket(AF_NETLINK, SOCK_RAW, -1));
	err("protocol 32", socket(AF_NETLINK, SOCK_RAW, 32));
	err("protocol 31", socket(AF_NETLINK, SOCK_RAW, 31));
	err("NETLINK_KOBJECT_UEVENT", socket(AF_NETLINK, SOCK_RAW, NETLINK_KOBJECT_UEVENT));
	int s[2];
	err("pair", socketpair(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE, s));
}

TEST(binding, "bind and connect")
{
	int s = route(), t = route();
	char c;
	struct sockaddr_nl a = {.nl_family = AF_NETLINK};
	name("unbound", s);
	err("short", bind(s, (void *)&a, 11));
	err("family", (a.nl_family = AF_INET, bind(s, (void *)&a, sizeof a)));
	a.nl_family = AF_NETLINK;
	err("bind", bind_to(s, 0, 0));
	name("bound", s);
	err("again", bind_to(s, 0, 0));
	err("again to the same", bind_to(s, getpid(), 0));
	err("to another", bind_to(s, 12345, 0));
	err("groups", bind_to(s, 0, RTMGRP_LINK));
	name("with a group", s);
	err("another takes the port", bind_to(t, getpid(), 0));
	err("another, none", bind_to(t, 0, 0));
	name("it", t);
	int u = route();
	err("a port of choice", bind_to(u, 4242, 0));
	name("it", u);
	err("listen", listen(s, 1));
	err("accept", accept(s, NULL, NULL));
	err("shutdown", shutdown(s, SHUT_RD));
	num("read 0", read(s, &c, 0));
	err("connect to a port", (a.nl_pid = 4242, connect(s, (void *)&a, sizeof a)));
	a.nl_pid = 0;
	err("connect to the kernel", connect(s, (void *)&a, sizeof a));
	socklen_t n = sizeof a;
	a.nl_pid = 99;
	err("getpeername", getpeername(s, (void *)&a, &n));
	say("port %u", a.nl_pid);
	err("connect to nobody", (a.nl_family = AF_UNSPEC, connect(s, (void *)&a, sizeof a)));
	err("short connect", (a.nl_family = AF_NETLINK, connect(s, (void *)&a, 10)));
	IN_CHILD("unprivileged", {
		setuid(1000);
		int v = route();
		err("groups", bind_to(v, 0, RTMGRP_LINK));
		err("a port", bind_to(v, 77777, 0));
	});
	int v = RTNLGRP_LINK;
	err("membership", setsockopt(t, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &v, 4));
	name("a member", t);
	uint32_t list[4] = {0};
	n = sizeof list;
	num("list", getsockopt(t, SOL_NETLINK, NETLINK_LIST_MEMBERSHIPS, list, &n));
	say("%#x", list[0]);
	err("drop", setsockopt(t, SOL_NETLINK, NETLINK_DROP_MEMBERSHIP, &v, 4));
	name("no member", t);
	v = 9999;
	err("no such group", setsockopt(t, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &v, 4));
	v = 0;
	err("group 0", setsockopt(t, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &v, 4));
	static const int options[] = {NETLINK_PKTINFO, NETLINK_BROADCAST_ERROR, NETLINK_NO_ENOBUFS, NETLINK_CAP_ACK, NETLINK_EXT_ACK, NETLINK_GET_STRICT_CHK, 77};
	for (unsigned i = 0; i < sizeof options / sizeof *options; i++) {
		char what[40];
		snprintf(what, sizeof what, "option %d", options[i]);
		v = 1;
		err(what, setsockopt(t, SOL_NETLINK, options[i], &v, 4));
		v = 99, n = 4;
		long rc = getsockopt(t, SOL_NETLINK, options[i], &v, &n);
		say("then %s %d", rc < 0 ? name_of(errno) : "ok", v);
	}
	err("another level", setsockopt(t, 6, 1, &v, 4));
	n = 2;
	err("little room", getsockopt(t, SOL_NETLINK, NETLINK_EXT_ACK, &v, &n));
}

TEST(requests, "requests")
{
	int s = route();
	struct request r;
	bind_to(s, 0, 0);
#define ASK(what) do { num(what, send(s, &r, r.h.nlmsg_len, 0)); answers(what, s); } while (0)
	r = request(RTM_GETLINK, NLM_F_REQUEST, sizeof(struct ifinfomsg));
	((struct ifinfomsg *)r.body)->ifi_index = 1;
	ASK("link 1");
	r.h.nlmsg_flags |= NLM_F_ACK;
	ASK("link 1, ACK");
	((struct ifinfomsg *)r.body)->ifi_index = 99;
	ASK("link 99");
	((struct ifinfomsg *)r.body)->ifi_index = 0;
	ASK("no link");
	((struct ifinfomsg *)r.body)->ifi_index = -1;
	ASK("link -1");
	r = request(RTM_GETLINK, NLM_F_REQUEST, 4);
	ASK("short body");
	r = request(RTM_GETLINK, 0, sizeof(struct ifinfomsg));
	ASK("no request");
	r = request(RTM_GETLINK, NLM_F_ACK, sizeof(struct ifinfomsg));
	ASK("no request, ACK");
	r = request(NLMSG_NOOP, NLM_F_REQUEST, 0);
	ASK("NOOP");
	r = request(NLMSG_DONE, NLM_F_REQUEST | NLM_F_ACK, 0);
	ASK("DONE, ACK");
	r = request(RTM_MAX + 10, NLM_F_REQUEST, sizeof(struct rtgenmsg));
	ASK("beyond");
	r = request(RTM_MAX + 10, NLM_F_REQUEST | NLM_F_DUMP, sizeof(struct rtgenmsg));
	ASK("beyond, dump");
	r = request(RTM_GETLINK, NLM_F_REQUEST | NLM_F_DUMP, sizeof(struct ifinfomsg));
	ASK("links");
	r = request(RTM_GETADDR, NLM_F_REQUEST | NLM_F_DUMP, sizeof(struct ifaddrmsg));
	r.body[0] = AF_INET;
	ASK("addresses");
	r = request(RTM_GETADDR, NLM_F_REQUEST | NLM_F_DUMP, 1);
	ASK("addresses, a byte");
	r = request(RTM_GETADDR, NLM_F_REQUEST | NLM_F_DUMP, 0);
	ASK("addresses, none");
	r = request(RTM_GETADDR, NLM_F_REQUEST | NLM_F_DUMP, sizeof(struct ifaddrmsg));
	r.body[0] = 77;
	r.h.nlmsg_len = 3;
	num("too short", send(s, &r, 20, 0));
	answers("too short", s);
	r.h.nlmsg_len = 100;
	num("longer than sent", send(s, &r, 20, 0));
	answers("longer than sent", s);
	num("nothing", send(s, &r, 0, 0));
	answers("nothing", s);
	num("a header's half", send(s, &r, 8, 0));
	answers("a header's half", s);
	struct request two[2];
	memset(two, 0, sizeof two);
	two[0] = request(RTM_GETLINK, NLM_F_REQUEST, sizeof(struct ifinfomsg));
	((struct ifinfomsg *)two[0].body)->ifi_index = 1;
	memcpy((char *)two + 32, two, 32);
	num("two at once", send(s, two, 64, 0));
	answers("two at once", s);
	num("MSG_OOB", send(s, &r, 16, MSG_OOB));
	char c[10];
	num("recv MSG_OOB", recv(s, c, 1, MSG_OOB));
	struct sockaddr_nl to = {.nl_family = AF_NETLINK, .nl_pid = 55555};
	num("to nobody", sendto(s, &r, 16, 0, (void *)&to, sizeof to));
	num("to a short address", sendto(s, &r, 16, 0, (void *)&to, 4));
	to.nl_family = AF_INET, to.nl_pid = 0;
	num("to another family", sendto(s, &r, 16, 0, (void *)&to, sizeof to));
}

TEST(privileges, "what only root may do")
{
	IN_CHILD("unprivileged", {
		setuid(1000);
		int s = route();
		bind_to(s, 0, 0);
		struct request r = request(RTM_NEWLINK, NLM_F_REQUEST | NLM_F_ACK, sizeof(struct ifinfomsg));
		ASK("RTM_NEWLINK");
		r = request(RTM_NEWADDR, NLM_F_REQUEST, sizeof(struct ifaddrmsg));
		ASK("RTM_NEWADDR");
		r = request(RTM_DELROUTE, NLM_F_REQUEST, sizeof(struct rtmsg));
		ASK("RTM_DELROUTE");
		r = request(RTM_GETLINK, NLM_F_REQUEST | NLM_F_DUMP, sizeof(struct ifinfomsg));
		ASK("RTM_GETLINK");
	});
}

TEST(receives, "receives that do not fit, peeks, credentials")
{
	int s = route(), v = 1;
	char b[8192], control[200];
	struct sockaddr_nl from;
	bind_to(s, 0, 0);
	struct request r = request(RTM_GETLINK, NLM_F_REQUEST | NLM_F_DUMP, sizeof(struct ifinfomsg));
	send(s, &r, r.h.nlmsg_len, 0);
	struct iovec iov = {b, 16};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1, .msg_name = &from, .msg_namelen = sizeof from, .msg_control = control, .msg_controllen = sizeof control};
#define RECEIVE(what, flags) do { \
	m.msg_controllen = sizeof control, m.msg_namelen = sizeof from, memset(b, 0, 16); \
	long n = recvmsg(s, &m, flags); \
	say("%s: %s, flags %#x control %zu name %u type %d", what, n < 0 ? name_of(errno) : n == (long)iov.iov_len ? "full" : n > (long)iov.iov_len ? "longer" : "short", n < 0 ? 0 : m.msg_flags, n < 0 ? 0 : m.msg_controllen, n < 0 ? 0 : m.msg_namelen, n < 0 ? 0 : ((struct nlmsghdr *)b)->nlmsg_type); } while (0)
	RECEIVE("peek", MSG_PEEK);
	RECEIVE("peek, whole length", MSG_PEEK | MSG_TRUNC);
	RECEIVE("a header", 0);
	for (int i = 0; i < 20 && ((struct nlmsghdr *)b)->nlmsg_type == RTM_NEWLINK; i++)
		if (recv(s, b, 16, 0) < 0)
			break;
	say("the last is %d", ((struct nlmsghdr *)b)->nlmsg_type);
	RECEIVE("nothing", 0);
	setsockopt(s, SOL_SOCKET, SO_PASSCRED, &v, 4);
	r = request(RTM_GETLINK, NLM_F_REQUEST, sizeof(struct ifinfomsg));
	((struct ifinfomsg *)r.body)->ifi_index = 1;
	send(s, &r, r.h.nlmsg_len, 0);
	iov.iov_len = sizeof b;
	RECEIVE("credentials", 0);
	struct ucred *u = (void *)CMSG_DATA(CMSG_FIRSTHDR(&m));
	say("pid %d uid %d gid %d; from port %d groups %d", u->pid, (int)u->uid, (int)u->gid, from.nl_pid, from.nl_groups);
	v = 0;
	setsockopt(s, SOL_SOCKET, SO_PASSCRED, &v, 4);
	send(s, &r, r.h.nlmsg_len, 0);
	num("bad buffer", recv(s, (void *)8, 100, 0));
	send(s, &r, r.h.nlmsg_len, 0);
	num("no room", recv(s, b, 0, 0));
	answers("lost", s);
	struct pollfd f = {s, POLLIN | POLLOUT | POLLRDNORM | POLLWRNORM | POLLWRBAND | POLLPRI, 0};
	poll(&f, 1, 0);
	say("poll %#x", f.revents);
	send(s, &r, r.h.nlmsg_len, 0);
	poll(&f, 1, 0);
	say("poll %#x", f.revents);
}

TEST(overrun, "answers that nobody reads")
{
	int s = route(), n = 0;
	char b[8192];
	bind_to(s, 0, 0);
	struct request r = request(NLMSG_NOOP, NLM_F_REQUEST | NLM_F_ACK, 0);
	for (int i = 0; i < 2000; i++)
		send(s, &r, r.h.nlmsg_len, 0);
	struct pollfd f = {s, POLLIN, 0};
	poll(&f, 1, 0);
	say("poll %#x", f.revents);
	num("the loss is told first", recv(s, b, sizeof b, 0));
	num("then an answer", recv(s, b, sizeof b, 0));
	while (recv(s, b, sizeof b, 0) > 0)
		n++;
	say("some %d, then %s", n > 20 && n < 1999, name_of(errno));
}

TEST(messages, "one program to another")
{
	int s = route(), t = route();
	char b[100];
	struct sockaddr_nl a = {.nl_family = AF_NETLINK, .nl_pid = 34567};
	bind_to(s, 0, 0), bind_to(t, 34567, 0);
	num("to another socket", sendto(s, "hello", 5, 0, (void *)&a, sizeof a));
	num("it", recv(t, b, 100, 0));
	a.nl_pid = 0, a.nl_groups = 1;
	num("to a group", sendto(s, "hello", 5, 0, (void *)&a, sizeof a));
}
