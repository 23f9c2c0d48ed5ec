// Program netconf tests how programs change lo: up and down, its MTU, addresses and
// routes, by ioctl and by rtnetlink, and what listeners hear. On Linux it has a network of
// its own for that.
#include "gt.h"

#include <arpa/inet.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <net/route.h>
#include <netinet/in.h>
#include <sys/socket.h>

#define LEN(a) (sizeof(a) / sizeof *(a))

static int udp(void) { return (int)must(socket(AF_INET, SOCK_DGRAM, 0), "socket"); }

static void flags(int on)
{
	struct ifreq r = {.ifr_name = "lo"};
	must(ioctl(udp(), SIOCGIFFLAGS, &r), "flags");
	r.ifr_flags = (short)(on ? r.ifr_flags | IFF_UP : r.ifr_flags & ~IFF_UP);
	must(ioctl(udp(), SIOCSIFFLAGS, &r), "set flags");
}

static void begin(void)
{
	unshare(CLONE_NEWNET); // as far as there are any
	flags(1);
}

static struct ifreq request(const char *name, const char *address)
{
	struct ifreq r = {0};
	strcpy(r.ifr_name, name);
	struct sockaddr_in *a = (void *)&r.ifr_addr;
	a->sin_family = AF_INET;
	inet_pton(AF_INET, address, &a->sin_addr);
	return r;
}

static const char *text(struct sockaddr *a)
{
	static char b[40];
	return inet_ntop(AF_INET, &((struct sockaddr_in *)a)->sin_addr, b, sizeof b);
}

static void list(const char *what)
{
	char line[600] = "";
	struct ifreq r[10];
	struct ifconf c = {.ifc_len = sizeof r, .ifc_req = r};
	int s = udp();
	must(ioctl(s, SIOCGIFCONF, &c), "conf");
	for (int i = 0; i < c.ifc_len / (int)sizeof *r; i++) {
		if (strncmp(r[i].ifr_name, "lo", 2))
			continue;
		sprintf(line + strlen(line), " %s %s", r[i].ifr_name, text(&r[i].ifr_addr));
		struct ifreq x = r[i];
		if (ioctl(s, SIOCGIFNETMASK, &x) == 0)
			sprintf(line + strlen(line), "/%s", text(&x.ifr_netmask));
	}
	say("%s:%s", what, line);
	close(s);
}

static void reach(const char *what, const char *address)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(9)};
	inet_pton(AF_INET, address, &a.sin_addr);
	int s = udp(), t = (int)must(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), "socket"), u = udp();
	char line[80];
	snprintf(line, sizeof line, "%s: udp connect", what);
	err(line, connect(s, (void *)&a, sizeof a));
	snprintf(line, sizeof line, "%s: tcp connect", what);
	err(line, connect(t, (void *)&a, sizeof a));
	a.sin_port = 0;
	snprintf(line, sizeof line, "%s: bind", what);
	err(line, bind(u, (void *)&a, sizeof a));
	close(s), close(t), close(u);
}

TEST(updown, "lo goes down and up")
{
	begin();
	struct ifreq r = {.ifr_name = "lo"};
	int s = udp();
	ioctl(s, SIOCGIFFLAGS, &r);
	say("up: %#x", r.ifr_flags);
	reach("up", "127.0.0.1");
	flags(0);
	ioctl(s, SIOCGIFFLAGS, &r);
	say("down: %#x", r.ifr_flags);
	reach("down", "127.0.0.1");
	list("down");
	flags(1);
	ioctl(s, SIOCGIFFLAGS, &r);
	say("up: %#x", r.ifr_flags);
	reach("up", "127.0.0.1");
	int six = (int)must(socket(AF_INET6, SOCK_DGRAM, 0), "socket");
	struct sockaddr_in6 a = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
	err("bind to ::1", bind(six, (void *)&a, sizeof a));
}

TEST(mtu, "the MTU of lo")
{
	begin();
	static const int table[] = {1500, 68, -1, 65536, 9000, 65536};
	int s = udp();
	for (size_t i = 0; i < LEN(table); i++) {
		struct ifreq r = {.ifr_name = "lo"};
		char what[40];
		r.ifr_mtu = table[i];
		snprintf(what, sizeof what, "mtu %d", table[i]);
		err(what, ioctl(s, SIOCSIFMTU, &r));
		ioctl(s, SIOCGIFMTU, &r);
		say("now %d", r.ifr_mtu);
		struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
		socklen_t n = sizeof a;
		int u = udp(), v = udp(), m = 0;
		bind(u, (void *)&a, n);
		getsockname(u, (void *)&a, &n);
		connect(v, (void *)&a, n);
		n = sizeof m;
		getsockopt(v, IPPROTO_IP, IP_MTU, &m, &n);
		static char big[20000];
		num("path", m);
		num("send", send(v, big, sizeof big, 0));
		num("recv", recv(u, big, sizeof big, 0));
		close(u), close(v);
	}
}

TEST(addresses, "addresses by ioctl")
{
	begin();
	static const struct {
		const char *what, *name;
		unsigned long request;
		const char *value;
	} table[] = {
	    {"another name", "lo:1", SIOCSIFADDR, "10.9.8.7"}, {"again", "lo:1", SIOCSIFADDR, "10.9.8.7"}, {"its mask", "lo:1", SIOCSIFNETMASK, "255.255.255.0"},
	    {"bad mask", "lo:1", SIOCSIFNETMASK, "255.0.255.0"}, {"same mask", "lo:1", SIOCSIFNETMASK, "255.255.255.0"}, {"broadcast", "lo:1", SIOCSIFBRDADDR, "10.9.8.255"},
	    {"changed", "lo:1", SIOCSIFADDR, "192.168.7.7"}, {"a group", "lo:1", SIOCSIFADDR, "224.0.0.1"}, {"class E", "lo:2", SIOCSIFADDR, "250.0.0.1"},
	    {"mask of none", "lo:9", SIOCSIFNETMASK, "255.0.0.0"}, {"broadcast of none", "lo:9", SIOCSIFBRDADDR, "255.0.0.0"},
	    {"a third", "lo:x", SIOCSIFADDR, "172.16.1.1"}, {"ended", "lo:x", SIOCSIFADDR, "0.0.0.0"}, {"same peer", "lo:1", SIOCSIFDSTADDR, "192.168.7.7"},
	};
	int s = udp();
	for (size_t i = 0; i < LEN(table); i++) {
		struct ifreq r = request(table[i].name, table[i].value);
		err(table[i].what, ioctl(s, table[i].request, &r));
		list(table[i].what);
	}
	struct ifreq r = request("lo:1", "0.0.0.0");
	err("broadcast", ioctl(s, SIOCGIFBRDADDR, &r));
	say("%s", text(&r.ifr_broadaddr));
	reach("it answers", "192.168.7.7");
	r = request("lo:1", "0.0.0.0");
	r.ifr_flags = 0;
	err("the name goes down", ioctl(s, SIOCSIFFLAGS, &r));
	list("without");
	r = request("lo:1", "0.0.0.0");
	r.ifr_flags = 0;
	err("again", ioctl(s, SIOCSIFFLAGS, &r));
	r = request("lo", "127.0.0.1");
	((struct sockaddr_in *)&r.ifr_addr)->sin_family = AF_INET6;
	err("another family", ioctl(s, SIOCSIFADDR, &r));
	r = request("lo:2", "0.0.0.0");
	err("end lo:2", ioctl(s, SIOCSIFADDR, &r));
	list("at the end");
}

TEST(routes, "routes by ioctl")
{
	begin();
	static const struct {
		const char *what, *to, *mask, *via, *dev;
		int flags, metric, add;
	} table[] = {
	    {"a net", "10.7.0.0", "255.255.0.0", 0, "lo", RTF_UP, 0, 1}, {"again", "10.7.0.0", "255.255.0.0", 0, "lo", RTF_UP, 0, 1},
	    {"another metric", "10.8.0.0", "255.255.0.0", 0, "lo", RTF_UP, 5, 1}, {"a host", "10.7.1.1", "0.0.0.0", 0, "lo", RTF_UP | RTF_HOST, 0, 1},
	    {"host bits", "10.7.1.1", "255.255.0.0", 0, "lo", RTF_UP, 0, 1}, {"bad mask", "10.0.0.0", "255.0.255.0", 0, "lo", RTF_UP, 0, 1},
	    {"no such device", "10.7.0.0", "255.255.0.0", 0, "nosuch", RTF_UP, 0, 1}, {"no device", "10.6.0.0", "255.255.0.0", 0, 0, RTF_UP, 0, 1},
	    {"gateway of nothing", "10.6.0.0", "255.255.0.0", 0, "lo", RTF_UP | RTF_GATEWAY, 0, 1},
	    {"own gateway", "10.6.0.0", "255.255.0.0", "127.0.0.1", 0, RTF_UP | RTF_GATEWAY, 0, 1}, {"far gateway", "10.6.0.0", "255.255.0.0", "192.0.2.1", 0, RTF_UP | RTF_GATEWAY, 0, 1},
	    {"end the net", "10.7.0.0", "255.255.0.0", 0, 0, RTF_UP, 0, 0}, {"end it again", "10.7.0.0", "255.255.0.0", 0, 0, RTF_UP, 0, 0},
	    {"end by another metric", "10.8.0.0", "255.255.0.0", 0, 0, RTF_UP, 9, 0}, {"end by its metric", "10.8.0.0", "255.255.0.0", 0, 0, RTF_UP, 5, 0},
	    {"end the host", "10.7.1.1", "0.0.0.0", 0, "lo", RTF_UP | RTF_HOST, 0, 0}, {"end the one by 127.0.0.1", "10.6.0.0", "255.255.0.0", "127.0.0.1", 0, RTF_UP, 0, 0},
	};
	int s = udp();
	for (size_t i = 0; i < LEN(table); i++) {
		struct rtentry r = {.rt_flags = (unsigned short)table[i].flags, .rt_metric = (short)(table[i].metric ? table[i].metric + 1 : 0), .rt_dev = (char *)table[i].dev};
		r.rt_dst = request("", table[i].to).ifr_addr;
		r.rt_genmask = request("", table[i].mask).ifr_addr;
		if (table[i].via)
			r.rt_gateway = request("", table[i].via).ifr_addr;
		err(table[i].what, ioctl(s, table[i].add ? SIOCADDRT : SIOCDELRT, &r));
		char line[300];
		FILE *f = fopen("/proc/net/route", "r");
		while (fgets(line, sizeof line, f)) {
			char dev[20];
			unsigned to, via, flag, metric, mask;
			if (sscanf(line, "%19s %x %x %x %*d %*d %d %x", dev, &to, &via, &flag, &metric, &mask) == 6 && !strcmp(dev, "lo"))
				say("  %s %08x/%08x via %x flags %#x metric %d", dev, ntohl(to), ntohl(mask), via, flag, metric);
		}
		fclose(f);
	}
	struct rtentry r = {0};
	err("no family", ioctl(s, SIOCADDRT, &r));
	err("nowhere", ioctl(s, SIOCADDRT, 1));
}

struct message {
	struct nlmsghdr h;
	union {
		struct ifinfomsg link;
		struct ifaddrmsg address;
		struct rtmsg route;
	} u;
	char room[200];
};

static void attribute(struct message *m, int type, const void *data, size_t n)
{
	struct rtattr *a = (void *)((char *)m + NLMSG_ALIGN(m->h.nlmsg_len));
	a->rta_type = (unsigned short)type, a->rta_len = (unsigned short)RTA_LENGTH(n);
	memcpy(RTA_DATA(a), data, n);
	m->h.nlmsg_len = NLMSG_ALIGN(m->h.nlmsg_len) + RTA_ALIGN(a->rta_len);
}

static void number(struct message *m, int type, unsigned v) { attribute(m, type, &v, sizeof v); }

static void ip(struct message *m, int type, const char *value)
{
	unsigned char b[16];
	int six = strchr(value, ':') != NULL;
	inet_pton(six ? AF_INET6 : AF_INET, value, b);
	attribute(m, type, b, six ? 16 : 4);
}

static int nl(unsigned groups)
{
	int s = (int)must(socket(AF_NETLINK, SOCK_RAW | SOCK_NONBLOCK, NETLINK_ROUTE), "socket");
	struct sockaddr_nl a = {.nl_family = AF_NETLINK, .nl_groups = groups};
	must(bind(s, (void *)&a, sizeof a), "bind");
	return s;
}

static void change(const char *what, int s, struct message *m, int type, int flags)
{
	m->h.nlmsg_type = (unsigned short)type, m->h.nlmsg_flags = (unsigned short)(NLM_F_REQUEST | NLM_F_ACK | flags), m->h.nlmsg_seq = 4711;
	char b[4096];
	must(send(s, m, m->h.nlmsg_len, 0), "send");
	ssize_t n = recv(s, b, sizeof b, 0);
	struct nlmsghdr *h = (void *)b;
	if (n < 0 || h->nlmsg_type != NLMSG_ERROR)
		say("%s: no answer", what);
	else {
		int e = ((struct nlmsgerr *)NLMSG_DATA(h))->error;
		say("%s: %s", what, e ? name_of(-e) : "ok");
	}
}

// heard prints the events that concern lo and the main table; those of IPv6 that come by
// themselves are left out.
static void heard(const char *what, int s)
{
	char b[8192];
	ssize_t n;
	while ((n = recv(s, b, sizeof b, 0)) > 0)
		for (struct nlmsghdr *h = (void *)b; NLMSG_OK(h, n); h = NLMSG_NEXT(h, n)) {
			struct rtmsg *r = NLMSG_DATA(h);
			struct ifaddrmsg *a = NLMSG_DATA(h);
			struct ifinfomsg *l = NLMSG_DATA(h);
			if (h->nlmsg_type == RTM_NEWLINK && l->ifi_family == AF_UNSPEC)
				say("%s: link flags %#x", what, l->ifi_flags);
			else if ((h->nlmsg_type == RTM_NEWADDR || h->nlmsg_type == RTM_DELADDR) && a->ifa_family == AF_INET) {
				char line[200] = "", t[40];
				int k = (int)IFA_PAYLOAD(h);
				for (struct rtattr *x = IFA_RTA(a); RTA_OK(x, k); x = RTA_NEXT(x, k))
					if (x->rta_type == IFA_LOCAL || x->rta_type == IFA_BROADCAST)
						sprintf(line + strlen(line), " %d:%s", x->rta_type, inet_ntop(AF_INET, RTA_DATA(x), t, sizeof t));
					else if (x->rta_type == IFA_LABEL)
						sprintf(line + strlen(line), " %s", (char *)RTA_DATA(x));
				say("%s: address %s/%d scope %d%s, seq %d", what, h->nlmsg_type == RTM_NEWADDR ? "new" : "gone", a->ifa_prefixlen, a->ifa_scope, line, h->nlmsg_seq);
			} else if ((h->nlmsg_type == RTM_NEWROUTE || h->nlmsg_type == RTM_DELROUTE) && r->rtm_family == AF_INET && r->rtm_table == RT_TABLE_MAIN) {
				char line[200] = "", t[40];
				int k = (int)RTM_PAYLOAD(h);
				for (struct rtattr *x = RTM_RTA(r); RTA_OK(x, k); x = RTA_NEXT(x, k))
					if (x->rta_type == RTA_DST || x->rta_type == RTA_GATEWAY || x->rta_type == RTA_PREFSRC)
						sprintf(line + strlen(line), " %d:%s", x->rta_type, inet_ntop(AF_INET, RTA_DATA(x), t, sizeof t));
					else if (x->rta_type == RTA_PRIORITY)
						sprintf(line + strlen(line), " metric %d", *(int *)RTA_DATA(x));
				say("%s: route %s/%d scope %d protocol %d type %d%s, seq %d", what, h->nlmsg_type == RTM_NEWROUTE ? "new" : "gone", r->rtm_dst_len, r->rtm_scope, r->rtm_protocol, r->rtm_type, line, h->nlmsg_seq);
			}
		}
	if (errno != EAGAIN)
		say("%s: %s", what, name_of(errno));
}

static struct message address_message(const char *local, int prefix, int index)
{
	struct message m = {.h.nlmsg_len = NLMSG_LENGTH(sizeof(struct ifaddrmsg))};
	m.u.address = (struct ifaddrmsg){.ifa_family = strchr(local, ':') ? AF_INET6 : AF_INET, .ifa_prefixlen = (unsigned char)prefix, .ifa_index = (unsigned)index};
	ip(&m, IFA_LOCAL, local);
	ip(&m, IFA_ADDRESS, local);
	return m;
}

static struct message route_message(const char *to, int prefix, int scope)
{
	struct message m = {.h.nlmsg_len = NLMSG_LENGTH(sizeof(struct rtmsg))};
	m.u.route = (struct rtmsg){.rtm_family = strchr(to, ':') ? AF_INET6 : AF_INET, .rtm_dst_len = (unsigned char)prefix, .rtm_table = RT_TABLE_MAIN, .rtm_protocol = RTPROT_BOOT, .rtm_scope = (unsigned char)scope, .rtm_type = RTN_UNICAST};
	ip(&m, RTA_DST, to);
	return m;
}

TEST(nladdress, "addresses by rtnetlink")
{
	begin();
	int lo = (int)if_nametoindex("lo"), s = nl(0), ear = nl(RTMGRP_IPV4_IFADDR | RTMGRP_IPV4_ROUTE | RTMGRP_LINK);
	struct message m = address_message("10.1.1.1", 24, lo);
	change("new", s, &m, RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL);
	heard("new", ear);
	list("new");
	change("again", s, &m, RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL);
	change("again, replaced", s, &m, RTM_NEWADDR, NLM_F_CREATE | NLM_F_REPLACE);
	heard("again", ear);
	m = address_message("10.1.2.1", 24, lo);
	ip(&m, IFA_BROADCAST, "10.1.2.255");
	attribute(&m, IFA_LABEL, "lo:x", 5);
	change("with a label", s, &m, RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL);
	heard("with a label", ear);
	list("with a label");
	static const struct {
		const char *what, *a;
		int prefix, index, type;
	} table[] = {
	    {"long prefix", "10.3.1.1", 33, 1, RTM_NEWADDR}, {"no such interface", "10.3.1.1", 24, 9999, RTM_NEWADDR}, {"no interface", "10.3.1.1", 24, 0, RTM_NEWADDR},
	    {"delete by another prefix", "10.1.1.1", 16, 1, RTM_DELADDR}, {"delete", "10.1.1.1", 24, 1, RTM_DELADDR}, {"delete again", "10.1.1.1", 24, 1, RTM_DELADDR},
	    {"delete, no interface", "10.1.2.1", 24, 9999, RTM_DELADDR}, {"delete the other", "10.1.2.1", 24, 1, RTM_DELADDR}, {"a host", "10.4.4.4", 32, 1, RTM_NEWADDR},
	    {"delete the host", "10.4.4.4", 32, 1, RTM_DELADDR}, {"of IPv6", "2001:db8::1", 64, 1, RTM_NEWADDR}, {"of IPv6 again", "2001:db8::1", 64, 1, RTM_NEWADDR},
	    {"delete of IPv6", "2001:db8::1", 64, 1, RTM_DELADDR}, {"delete of IPv6 again", "2001:db8::1", 64, 1, RTM_DELADDR}, {"IPv6, long prefix", "2001:db8::1", 129, 1, RTM_NEWADDR},
	};
	for (size_t i = 0; i < LEN(table); i++) {
		m = address_message(table[i].a, table[i].prefix, table[i].index == 1 ? lo : table[i].index);
		change(table[i].what, s, &m, table[i].type, table[i].type == RTM_NEWADDR ? NLM_F_CREATE | NLM_F_EXCL : 0);
		heard(table[i].what, ear);
	}
	list("at the end");
}

TEST(nlroute, "routes by rtnetlink")
{
	begin();
	unsigned lo = if_nametoindex("lo");
	int s = nl(0), ear = nl(RTMGRP_IPV4_ROUTE);
	enum { ADD = NLM_F_CREATE | NLM_F_EXCL, REPLACE = NLM_F_CREATE | NLM_F_REPLACE, APPEND = NLM_F_CREATE | NLM_F_APPEND, CHANGE = NLM_F_REPLACE, PREPEND = NLM_F_CREATE };
	static const struct {
		const char *what, *to, *via;
		int prefix, scope, metric, dev, type, flags;
	} table[] = {
	    {"add", "10.2.0.0", 0, 16, RT_SCOPE_LINK, 0, 1, RTM_NEWROUTE, ADD}, {"add again", "10.2.0.0", 0, 16, RT_SCOPE_LINK, 0, 1, RTM_NEWROUTE, ADD},
	    {"prepend the same", "10.2.0.0", 0, 16, RT_SCOPE_LINK, 0, 1, RTM_NEWROUTE, PREPEND}, {"append the same", "10.2.0.0", 0, 16, RT_SCOPE_LINK, 0, 1, RTM_NEWROUTE, APPEND},
	    {"replace", "10.2.0.0", 0, 16, RT_SCOPE_LINK, 0, 1, RTM_NEWROUTE, REPLACE}, {"change", "10.2.0.0", 0, 16, RT_SCOPE_LINK, 0, 1, RTM_NEWROUTE, CHANGE},
	    {"change what is not there", "10.5.0.0", 0, 16, RT_SCOPE_LINK, 0, 1, RTM_NEWROUTE, CHANGE}, {"replace what is not there", "10.5.0.0", 0, 16, RT_SCOPE_LINK, 7, 1, RTM_NEWROUTE, REPLACE},
	    {"no flags", "10.6.0.0", 0, 16, RT_SCOPE_LINK, 0, 1, RTM_NEWROUTE, 0}, {"host bits", "10.2.0.1", 0, 16, RT_SCOPE_LINK, 0, 1, RTM_NEWROUTE, ADD},
	    {"long prefix", "10.2.0.0", 0, 33, RT_SCOPE_LINK, 0, 1, RTM_NEWROUTE, ADD}, {"no such interface", "10.6.0.0", 0, 16, RT_SCOPE_LINK, 0, 9999, RTM_NEWROUTE, ADD},
	    {"no interface", "10.6.0.0", 0, 16, RT_SCOPE_LINK, 0, 0, RTM_NEWROUTE, ADD}, {"own gateway", "10.6.0.0", "127.0.0.1", 16, 0, 0, 0, RTM_NEWROUTE, ADD},
	    {"unreachable gateway", "10.6.0.0", "192.0.2.1", 16, 0, 0, 0, RTM_NEWROUTE, ADD}, {"unreachable by lo", "10.6.0.0", "192.0.2.1", 16, 0, 0, 1, RTM_NEWROUTE, ADD},
	    {"gateway, scope link", "10.6.0.0", "10.2.0.9", 16, RT_SCOPE_LINK, 0, 0, RTM_NEWROUTE, ADD}, {"gateway", "10.6.0.0", "10.2.0.9", 16, 0, 0, 0, RTM_NEWROUTE, ADD},
	    {"another gateway", "10.6.0.0", "10.2.0.8", 16, 0, 0, 0, RTM_NEWROUTE, ADD}, {"other gateway replaces", "10.6.0.0", "10.2.0.8", 16, 0, 0, 0, RTM_NEWROUTE, REPLACE},
	    {"delete by a wrong gateway", "10.6.0.0", "10.2.0.9", 16, RT_SCOPE_NOWHERE, 0, 0, RTM_DELROUTE, 0}, {"delete by another scope", "10.6.0.0", 0, 16, RT_SCOPE_LINK, 0, 0, RTM_DELROUTE, 0},
	    {"delete by the gateway", "10.6.0.0", "10.2.0.8", 16, RT_SCOPE_NOWHERE, 0, 0, RTM_DELROUTE, 0}, {"delete by another metric", "10.5.0.0", 0, 16, RT_SCOPE_NOWHERE, 8, 0, RTM_DELROUTE, 0},
	    {"delete by its metric", "10.5.0.0", 0, 16, RT_SCOPE_NOWHERE, 7, 0, RTM_DELROUTE, 0}, {"delete", "10.2.0.0", 0, 16, RT_SCOPE_NOWHERE, 0, 1, RTM_DELROUTE, 0},
	    {"delete again", "10.2.0.0", 0, 16, RT_SCOPE_NOWHERE, 0, 1, RTM_DELROUTE, 0},
	};
	for (size_t i = 0; i < LEN(table); i++) {
		struct message m = route_message(table[i].to, table[i].prefix, table[i].scope);
		if (table[i].type == RTM_DELROUTE)
			m.u.route.rtm_protocol = 0, m.u.route.rtm_type = 0;
		if (table[i].via)
			ip(&m, RTA_GATEWAY, table[i].via);
		if (table[i].dev)
			number(&m, RTA_OIF, table[i].dev == 1 ? lo : (unsigned)table[i].dev);
		if (table[i].metric)
			number(&m, RTA_PRIORITY, (unsigned)table[i].metric);
		change(table[i].what, s, &m, table[i].type, table[i].flags);
		heard(table[i].what, ear);
	}
}

TEST(nllink, "lo by rtnetlink")
{
	begin();
	int s = nl(0), ear = nl(RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV4_ROUTE);
	static const struct {
		const char *what, *name;
		unsigned flags, change, mtu;
	} table[] = {
	    {"nothing", "lo", 0, 0, 0}, {"up, which it is", "lo", IFF_UP, IFF_UP, 0}, {"down", "lo", 0, IFF_UP, 0}, {"down again", "lo", 0, IFF_UP, 0}, {"up", "lo", IFF_UP, IFF_UP, 0},
	    {"mtu", "lo", 0, 0, 1400}, {"mtu again", "lo", 0, 0, 1400}, {"mtu and down", "lo", 0, IFF_UP, 65536}, {"up", "lo", IFF_UP, IFF_UP, 0}, {"another", "nosuch", IFF_UP, IFF_UP, 0},
	};
	for (size_t i = 0; i < LEN(table); i++) {
		struct message m = {.h.nlmsg_len = NLMSG_LENGTH(sizeof(struct ifinfomsg))};
		m.u.link.ifi_flags = table[i].flags, m.u.link.ifi_change = table[i].change;
		attribute(&m, IFLA_IFNAME, table[i].name, strlen(table[i].name) + 1);
		if (table[i].mtu)
			number(&m, IFLA_MTU, table[i].mtu);
		change(table[i].what, s, &m, RTM_NEWLINK, 0);
		heard(table[i].what, ear);
	}
	reach("up", "127.0.0.1");
}

TEST(rights, "what others may not")
{
	begin();
	must(setresuid(1000, 1000, 1000), "setresuid");
	static const unsigned long requests[] = {SIOCSIFFLAGS, SIOCSIFMTU, SIOCSIFADDR, SIOCSIFNETMASK, SIOCSIFBRDADDR, SIOCSIFDSTADDR, SIOCADDRT, SIOCDELRT};
	int s = udp();
	for (size_t i = 0; i < LEN(requests); i++) {
		char what[40], room[200] = "lo";
		snprintf(what, sizeof what, "ioctl %#lx", requests[i]);
		err(what, ioctl(s, requests[i], room));
	}
	int n = nl(0);
	struct message m = address_message("10.1.1.1", 24, 1), r = route_message("10.1.0.0", 16, RT_SCOPE_LINK);
	struct message l = {.h.nlmsg_len = NLMSG_LENGTH(sizeof(struct ifinfomsg)), .u.link.ifi_index = 1};
	change("address", n, &m, RTM_NEWADDR, NLM_F_CREATE);
	change("no address", n, &m, RTM_DELADDR, 0);
	change("route", n, &r, RTM_NEWROUTE, NLM_F_CREATE);
	change("no route", n, &r, RTM_DELROUTE, 0);
	change("link", n, &l, RTM_NEWLINK, 0);
}
