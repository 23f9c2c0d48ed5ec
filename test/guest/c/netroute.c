// Program netroute tests what rtnetlink tells and keeps beyond addresses and routes: how
// long an address stays, which of a prefix is first, the table local, rules of routing, and
// what is refused. On Linux it has a network of its own for that.
#include "gt.h"

#include <arpa/inet.h>
#include <linux/fib_rules.h>
#include <linux/neighbour.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#define LEN(a) (sizeof(a) / sizeof *(a))

static void begin(void)
{
	unshare(CLONE_NEWNET); // as far as there are any
	struct ifreq r = {.ifr_name = "lo", .ifr_flags = IFF_UP};
	int s = (int)must(socket(AF_INET, SOCK_DGRAM, 0), "socket");
	must(ioctl(s, SIOCSIFFLAGS, &r), "up");
	close(s);
}

struct message {
	struct nlmsghdr h;
	union {
		struct ifaddrmsg address;
		struct rtmsg route;
		struct fib_rule_hdr rule;
		struct ndmsg neighbor;
		struct ifinfomsg link;
		char family;
	} u;
	char room[300];
};

static void attribute(struct message *m, int type, const void *data, size_t n)
{
	struct rtattr a = {.rta_type = (unsigned short)type, .rta_len = (unsigned short)RTA_LENGTH(n)};
	char *at = (char *)m + NLMSG_ALIGN(m->h.nlmsg_len);
	memcpy(at, &a, sizeof a);
	memcpy(at + RTA_LENGTH(0), data, n);
	m->h.nlmsg_len = NLMSG_ALIGN(m->h.nlmsg_len) + RTA_ALIGN(a.rta_len);
}

static void number(struct message *m, int type, unsigned v) { attribute(m, type, &v, sizeof v); }

static void ip(struct message *m, int type, const char *value)
{
	unsigned char b[16];
	int six = strchr(value, ':') != NULL;
	inet_pton(six ? AF_INET6 : AF_INET, value, b);
	attribute(m, type, b, six ? 16 : 4);
}

static int nl(void)
{
	int s = (int)must(socket(AF_NETLINK, SOCK_RAW | SOCK_NONBLOCK, NETLINK_ROUTE), "socket");
	struct sockaddr_nl a = {.nl_family = AF_NETLINK};
	must(bind(s, (void *)&a, sizeof a), "bind");
	return s;
}

static void join(int s, int group) { must(setsockopt(s, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &group, sizeof group), "join"); }

static int change(int s, struct message *m, int type, int flags)
{
	m->h.nlmsg_type = (unsigned short)type, m->h.nlmsg_flags = (unsigned short)(NLM_F_REQUEST | NLM_F_ACK | flags), m->h.nlmsg_seq = 4711;
	char b[4096];
	must(send(s, m, m->h.nlmsg_len, 0), "send");
	ssize_t n = recv(s, b, sizeof b, 0);
	struct nlmsghdr *h = (void *)b;
	return n < 0 || h->nlmsg_type != NLMSG_ERROR ? 9999 : -((struct nlmsgerr *)NLMSG_DATA(h))->error;
}

// print tells of a message what is the same everywhere: what is about lo.
static void print(const char *what, struct nlmsghdr *h)
{
	char line[700], t[50];
	struct rtmsg *r = NLMSG_DATA(h);
	struct fib_rule_hdr *u = NLMSG_DATA(h);
	struct ifaddrmsg *a = NLMSG_DATA(h);
	struct rtattr *x = NULL;
	int k = 0, lo = 1, index = (int)if_nametoindex("lo");
	switch (h->nlmsg_type) {
	case RTM_NEWROUTE:
	case RTM_DELROUTE:
		sprintf(line, "route %d/%d tos %d table %d protocol %d scope %d type %d flags %#x", r->rtm_family, r->rtm_dst_len, r->rtm_tos, r->rtm_table, r->rtm_protocol, r->rtm_scope, r->rtm_type, r->rtm_flags);
		x = RTM_RTA(r), k = (int)RTM_PAYLOAD(h);
		break;
	case RTM_NEWRULE:
	case RTM_DELRULE:
		sprintf(line, "%s rule %d to %d from %d tos %d table %d action %d flags %#x", h->nlmsg_type == RTM_NEWRULE ? "new" : "gone", u->family, u->dst_len, u->src_len, u->tos, u->table, u->action, u->flags);
		x = (void *)(u + 1), k = (int)(h->nlmsg_len - NLMSG_LENGTH(sizeof *u));
		break;
	case RTM_NEWADDR:
	case RTM_DELADDR:
		sprintf(line, "%s address %d/%d flags %#x scope %d", h->nlmsg_type == RTM_NEWADDR ? "new" : "gone", a->ifa_family, a->ifa_prefixlen, a->ifa_flags & ~IFA_F_TENTATIVE, a->ifa_scope);
		x = IFA_RTA(a), k = (int)IFA_PAYLOAD(h), lo = (int)a->ifa_index == index;
		break;
	default:
		sprintf(line, "message %d", h->nlmsg_type);
	}
	for (; RTA_OK(x, k); x = RTA_NEXT(x, k)) {
		size_t n = RTA_PAYLOAD(x);
		unsigned *v = RTA_DATA(x);
		int address = h->nlmsg_type == RTM_NEWADDR || h->nlmsg_type == RTM_DELADDR, route = h->nlmsg_type == RTM_NEWROUTE || h->nlmsg_type == RTM_DELROUTE;
		if (route && x->rta_type == RTA_OIF)
			lo = (int)*v == index;
		if (address && x->rta_type == IFA_FLAGS)
			*v &= ~(unsigned)IFA_F_TENTATIVE;
		if (address && x->rta_type == IFA_CACHEINFO)
			sprintf(line + strlen(line), " life %s %s since %s", v[0] == ~0U ? "ever" : v[0] ? "some" : "0", v[1] == ~0U ? "ever" : v[1] ? "some" : "0", v[2] ? "then" : "0");
		else if (route && x->rta_type == RTA_CACHEINFO)
			continue;
		else if (address && x->rta_type == IFA_LABEL)
			sprintf(line + strlen(line), " %s", (char *)v);
		else if ((n == 4 || n == 16) && (address ? x->rta_type <= IFA_BROADCAST : route ? x->rta_type == RTA_DST || x->rta_type == RTA_PREFSRC || x->rta_type == RTA_GATEWAY : x->rta_type <= FRA_SRC))
			sprintf(line + strlen(line), " %d:%s", x->rta_type, inet_ntop(n == 4 ? AF_INET : AF_INET6, v, t, sizeof t));
		else if (n == 1)
			sprintf(line + strlen(line), " %d:%d", x->rta_type, *(unsigned char *)v);
		else if (n == 4)
			sprintf(line + strlen(line), " %d:%#x", x->rta_type, *v);
		else
			sprintf(line + strlen(line), " %d[%zu]", x->rta_type, n);
	}
	if (lo)
		say("%s: %s", what, line);
}

static void heard(const char *what, int s)
{
	char b[8192];
	ssize_t n;
	while ((n = recv(s, b, sizeof b, 0)) > 0)
		for (struct nlmsghdr *h = (void *)b; NLMSG_OK(h, n); h = NLMSG_NEXT(h, n))
			print(what, h);
}

// dump lists what there is; of routes those of a table, unless it is 0.
static void dump(const char *what, int s, int type, int family, int table)
{
	struct message m = {.h = {.nlmsg_len = NLMSG_LENGTH(sizeof m.u), .nlmsg_type = (unsigned short)type, .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP, .nlmsg_seq = 5}};
	m.u.family = (char)family;
	if (type == RTM_GETROUTE)
		m.h.nlmsg_len = NLMSG_LENGTH(sizeof m.u.route), m.u.route.rtm_table = (unsigned char)table;
	must(send(s, &m, m.h.nlmsg_len, 0), "send");
	for (;;) {
		char b[16384];
		ssize_t n = recv(s, b, sizeof b, 0);
		if (n < 0) {
			say("%s: %s", what, name_of(errno));
			return;
		}
		for (struct nlmsghdr *h = (void *)b; NLMSG_OK(h, n); h = NLMSG_NEXT(h, n)) {
			if (h->nlmsg_type == NLMSG_DONE || h->nlmsg_type == NLMSG_ERROR) {
				int e = *(int *)NLMSG_DATA(h);
				say("%s: %s %s", what, h->nlmsg_type == NLMSG_DONE ? "done" : "error", e ? name_of(-e) : "0");
				return;
			}
			struct rtmsg *r = NLMSG_DATA(h);
			if (type == RTM_GETROUTE && table && r->rtm_table != table)
				continue;
			print(what, h);
		}
	}
}

static struct message address_message(const char *local, int prefix)
{
	struct message m = {.h.nlmsg_len = NLMSG_LENGTH(sizeof(struct ifaddrmsg))};
	m.u.address = (struct ifaddrmsg){.ifa_family = strchr(local, ':') ? AF_INET6 : AF_INET, .ifa_prefixlen = (unsigned char)prefix, .ifa_index = if_nametoindex("lo")};
	ip(&m, IFA_LOCAL, local);
	ip(&m, IFA_ADDRESS, local);
	return m;
}

static int has(const char *address)
{
	struct sockaddr_in a = {.sin_family = AF_INET};
	struct sockaddr_in6 b = {.sin6_family = AF_INET6};
	int six = strchr(address, ':') != NULL, s = (int)must(socket(six ? AF_INET6 : AF_INET, SOCK_DGRAM, 0), "socket");
	inet_pton(six ? AF_INET6 : AF_INET, address, six ? (void *)&b.sin6_addr : (void *)&a.sin_addr);
	int rc = six ? bind(s, (void *)&b, sizeof b) : bind(s, (void *)&a, sizeof a);
	close(s);
	return rc == 0;
}

TEST(life, "how long an address stays")
{
	begin();
	int s = nl(), ear = nl();
	join(ear, RTNLGRP_IPV4_IFADDR); // Linux announces an address of IPv6 later
	dump("at first", s, RTM_GETADDR, AF_UNSPEC, 0);
	static const struct {
		const char *what, *a;
		unsigned preferred, valid;
		int flags;
	} table[] = {
	    {"of an hour", "10.1.0.1", 1800, 3600, NLM_F_CREATE | NLM_F_EXCL}, {"again", "10.1.0.1", 5, 6, NLM_F_CREATE | NLM_F_EXCL}, {"again, by default", "10.1.0.1", 5, 6, NLM_F_CREATE},
	    {"changed", "10.1.0.1", 100, 200, NLM_F_CREATE | NLM_F_REPLACE}, {"for ever", "10.1.0.1", ~0U, ~0U, NLM_F_CREATE | NLM_F_REPLACE}, {"preferred longer", "10.2.0.1", 10, 9, NLM_F_CREATE},
	    {"no time", "10.2.0.1", 0, 0, NLM_F_CREATE}, {"not preferred", "10.2.0.1", 0, 50, NLM_F_CREATE}, {"valid for ever", "10.3.0.1", 50, ~0U, NLM_F_CREATE},
	    {"IPv6", "2001:db8:1::1", 1800, 3600, NLM_F_CREATE | NLM_F_EXCL}, {"IPv6 again", "2001:db8:1::1", 1800, 3600, NLM_F_CREATE | NLM_F_EXCL}, {"IPv6 changed", "2001:db8:1::1", ~0U, ~0U, NLM_F_CREATE | NLM_F_REPLACE},
	    {"IPv6, preferred longer", "2001:db8:2::1", 10, 9, NLM_F_CREATE}, {"IPv6, no time", "2001:db8:2::1", 0, 0, NLM_F_CREATE},
	};
	for (size_t i = 0; i < LEN(table); i++) {
		struct message m = address_message(table[i].a, strchr(table[i].a, ':') ? 128 : 24);
		struct ifa_cacheinfo life = {.ifa_prefered = table[i].preferred, .ifa_valid = table[i].valid};
		attribute(&m, IFA_CACHEINFO, &life, sizeof life);
		say("%s: %s", table[i].what, name_of(change(s, &m, RTM_NEWADDR, table[i].flags)));
		heard(table[i].what, ear);
	}
	dump("in the end", s, RTM_GETADDR, AF_UNSPEC, 0);
	struct message m = address_message("10.1.0.1", 24);
	say("deleted: %s", name_of(change(s, &m, RTM_DELADDR, 0)));
	heard("deleted", ear);
	static const char *const rest[] = {"10.2.0.1", "10.3.0.1", "2001:db8:1::1"};
	for (size_t i = 0; i < LEN(rest); i++) {
		m = address_message(rest[i], strchr(rest[i], ':') ? 128 : 24);
		change(s, &m, RTM_DELADDR, 0);
	}
}

TEST(expiry, "an address goes by itself")
{
	begin();
	int s = nl(), ear = nl();
	join(ear, RTNLGRP_IPV4_IFADDR), join(ear, RTNLGRP_IPV6_IFADDR);
	static const char *const all[] = {"10.9.0.1", "2001:db8:9::1"};
	for (size_t i = 0; i < LEN(all); i++) {
		int six = strchr(all[i], ':') != NULL;
		struct message m = address_message(all[i], six ? 128 : 32);
		struct ifa_cacheinfo life = {.ifa_prefered = 1, .ifa_valid = 2};
		attribute(&m, IFA_CACHEINFO, &life, sizeof life);
		say("%s: %s", all[i], name_of(change(s, &m, RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL)));
		say("it is there: %d", until(has(all[i])));
	}
	for (size_t i = 0; i < LEN(all); i++)
		say("%s has gone: %d", all[i], until(!has(all[i])));
	// Whoever changes addresses waits for a change under way to end, and for others to hear of it.
	struct message m = address_message(all[0], 32);
	change(s, &m, RTM_DELADDR, 0);
	// What was heard of each, without what Linux may say twice.
	for (int six = 0; six < 2; six++) {
		int made = 0, old = 0, gone = 0;
		char b[16384];
		static char kept[16384];
		static ssize_t size;
		for (ssize_t n; !six && (n = recv(ear, b, sizeof b, 0)) > 0; size += n)
			memcpy(kept + size, b, (size_t)n);
		ssize_t n = size;
		for (struct nlmsghdr *h = (void *)kept; NLMSG_OK(h, n); h = NLMSG_NEXT(h, n)) {
			struct ifaddrmsg *a = NLMSG_DATA(h);
			if (a->ifa_family != (six ? AF_INET6 : AF_INET))
				continue;
			made |= h->nlmsg_type == RTM_NEWADDR && !(a->ifa_flags & IFA_F_DEPRECATED);
			old |= h->nlmsg_type == RTM_NEWADDR && a->ifa_flags & IFA_F_DEPRECATED;
			gone |= h->nlmsg_type == RTM_DELADDR;
		}
		say("heard of %s: new %d, deprecated %d, gone %d", all[six], made, old, gone);
	}
}

TEST(order, "addresses of one prefix")
{
	begin();
	int s = nl(), ear = nl();
	join(ear, RTNLGRP_IPV4_IFADDR);
	static const char *const all[] = {"10.4.0.1", "10.4.0.2", "10.4.0.3"};
	for (int promote = 0; promote < 2; promote++) {
		int fd = open("/proc/sys/net/ipv4/conf/lo/promote_secondaries", O_WRONLY);
		must(write(fd, promote ? "1" : "0", 1), "sysctl");
		close(fd);
		struct message m;
		for (size_t i = 0; i < LEN(all); i++) {
			m = address_message(all[i], 24);
			say("%s: %s", all[i], name_of(change(s, &m, RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL)));
		}
		m = address_message("10.4.0.4", 25);
		say("another prefix: %s", name_of(change(s, &m, RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL)));
		heard("all", ear);
		dump("listed", s, RTM_GETADDR, AF_INET, 0);
		dump("their routes", s, RTM_GETROUTE, AF_INET, RT_TABLE_LOCAL);
		m = address_message(all[0], 24);
		say("the first goes: %s", name_of(change(s, &m, RTM_DELADDR, 0)));
		heard("the first", ear);
		dump("left", s, RTM_GETADDR, AF_INET, 0);
		m = address_message("10.4.0.4", 25);
		change(s, &m, RTM_DELADDR, 0);
		for (size_t i = 0; i < LEN(all); i++) {
			m = address_message(all[i], 24);
			change(s, &m, RTM_DELADDR, 0);
		}
		heard("the rest", ear);
	}
}

TEST(flags, "flags, metric and origin of an address")
{
	begin();
	int s = nl();
	static const unsigned flags[] = {IFA_F_NOPREFIXROUTE, IFA_F_SECONDARY, IFA_F_DEPRECATED, IFA_F_PERMANENT, IFA_F_HOMEADDRESS, IFA_F_NODAD};
	for (size_t i = 0; i < LEN(flags); i++)
		for (int six = 0; six < 2; six++) {
			char what[40];
			struct message m = address_message(six ? "2001:db8:5::1" : "10.5.0.1", six ? 64 : 24);
			snprintf(what, sizeof what, "flags %#x", flags[i]);
			number(&m, IFA_FLAGS, flags[i]);
			number(&m, IFA_RT_PRIORITY, 77);
			attribute(&m, IFA_PROTO, "\x04", 1);
			say("%s: %s", what, name_of(change(s, &m, RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL)));
			dump(what, s, RTM_GETADDR, six ? AF_INET6 : AF_INET, 0);
			dump(what, s, RTM_GETROUTE, six ? AF_INET6 : AF_INET, six ? RT_TABLE_MAIN : RT_TABLE_LOCAL);
			m = address_message(six ? "2001:db8:5::1" : "10.5.0.1", six ? 64 : 24);
			say("%s: gone %s", what, name_of(change(s, &m, RTM_DELADDR, 0)));
		}
}

TEST(tables, "which routes are listed")
{
	begin();
	int s = nl();
	dump("IPv4", s, RTM_GETROUTE, AF_INET, 0);
	dump("IPv6", s, RTM_GETROUTE, AF_INET6, 0);
	int on = 1;
	must(setsockopt(s, SOL_NETLINK, NETLINK_GET_STRICT_CHK, &on, sizeof on), "strict");
	static const int of[] = {RT_TABLE_MAIN, RT_TABLE_LOCAL, 77};
	for (size_t i = 0; i < LEN(of); i++)
		for (int family = 0; family <= AF_INET6; family += family ? AF_INET6 - AF_INET : AF_INET) {
			char what[40];
			snprintf(what, sizeof what, "table %d of %d", of[i], family);
			dump(what, s, RTM_GETROUTE, family, of[i]);
		}
	s = nl();
	static const char *const to[] = {"127.0.0.1", "127.0.0.2", "::1"};
	for (size_t i = 0; i < LEN(to); i++)
		for (int whole = 0; whole < 2; whole++) {
			struct message m = {.h = {.nlmsg_len = NLMSG_LENGTH(sizeof(struct rtmsg)), .nlmsg_type = RTM_GETROUTE, .nlmsg_flags = NLM_F_REQUEST, .nlmsg_seq = 5}};
			int six = strchr(to[i], ':') != NULL;
			m.u.route.rtm_family = six ? AF_INET6 : AF_INET, m.u.route.rtm_dst_len = six ? 128 : 32, m.u.route.rtm_flags = whole ? RTM_F_LOOKUP_TABLE : 0;
			ip(&m, RTA_DST, to[i]);
			must(send(s, &m, m.h.nlmsg_len, 0), "send");
			char b[4096];
			ssize_t n = recv(s, b, sizeof b, 0);
			struct nlmsghdr *h = (void *)b;
			struct rtmsg *r = NLMSG_DATA(h);
			if (n > 0 && h->nlmsg_type == RTM_NEWROUTE)
				say("to %s: %d table %d type %d", to[i], r->rtm_dst_len, r->rtm_table, r->rtm_type);
			else
				say("to %s: message %d", to[i], n > 0 ? h->nlmsg_type : -1);
		}
}

TEST(rules, "rules of routing")
{
	begin();
	int s = nl(), ear = nl();
	join(ear, RTNLGRP_IPV4_RULE), join(ear, RTNLGRP_IPV6_RULE);
	dump("IPv4", s, RTM_GETRULE, AF_INET, 0);
	dump("IPv6", s, RTM_GETRULE, AF_INET6, 0);
	dump("another family", s, RTM_GETRULE, AF_PACKET, 0);
	enum { ADD = NLM_F_CREATE | NLM_F_EXCL };
	static const struct {
		const char *what, *to, *from, *in;
		int prefix, table, priority, mark, tos, type, flags;
	} table[] = {
	    {"a rule", "192.0.2.0", 0, 0, 24, 99, 12345, 0, 0, RTM_NEWRULE, ADD}, {"again", "192.0.2.0", 0, 0, 24, 99, 12345, 0, 0, RTM_NEWRULE, ADD}, {"again, not exclusive", "192.0.2.0", 0, 0, 24, 99, 12345, 0, 0, RTM_NEWRULE, NLM_F_CREATE},
	    {"without a priority", 0, "10.0.0.1", 0, 32, 100, 0, 0, 0, RTM_NEWRULE, ADD}, {"another", 0, "10.0.0.2", 0, 32, 100, 0, 0, 0, RTM_NEWRULE, ADD}, {"by mark", 0, 0, 0, 0, 1000, 200, 7, 0, RTM_NEWRULE, ADD},
	    {"by interface", 0, 0, "lo", 0, 5, 201, 0, 0, RTM_NEWRULE, ADD}, {"by an absent interface", 0, 0, "nosuch0", 0, 5, 202, 0, 0, RTM_NEWRULE, ADD}, {"by TOS", 0, 0, 0, 0, 5, 203, 0, 8, RTM_NEWRULE, ADD},
	    {"bad TOS", 0, 0, 0, 0, 5, 204, 0, 3, RTM_NEWRULE, ADD}, {"long prefix", "192.0.2.0", 0, 0, 33, 5, 205, 0, 0, RTM_NEWRULE, ADD}, {"the main table", 0, "10.0.0.3", 0, 32, RT_TABLE_MAIN, 206, 0, 0, RTM_NEWRULE, ADD},
	    {"delete", "192.0.2.0", 0, 0, 24, 99, 12345, 0, 0, RTM_DELRULE, 0}, {"delete its twin", "192.0.2.0", 0, 0, 24, 99, 12345, 0, 0, RTM_DELRULE, 0}, {"delete again", "192.0.2.0", 0, 0, 24, 99, 12345, 0, 0, RTM_DELRULE, 0},
	    {"delete by the table", 0, 0, 0, 0, 100, 0, 0, 0, RTM_DELRULE, 0}, {"delete by a wrong mark", 0, 0, 0, 0, 0, 200, 8, 0, RTM_DELRULE, 0}, {"delete by the mark", 0, 0, 0, 0, 0, 200, 7, 0, RTM_DELRULE, 0},
	    {"of IPv6", "2001:db8::", 0, 0, 64, 99, 12345, 0, 0, RTM_NEWRULE, ADD}, {"of IPv6 again", "2001:db8::", 0, 0, 64, 99, 12345, 0, 0, RTM_NEWRULE, ADD},
	    {"of IPv6, deleted", "2001:db8::", 0, 0, 64, 99, 12345, 0, 0, RTM_DELRULE, 0}, {"of IPv6, deleted again", "2001:db8::", 0, 0, 64, 99, 12345, 0, 0, RTM_DELRULE, 0},
	};
	for (size_t i = 0; i < LEN(table); i++) {
		struct message m = {.h.nlmsg_len = NLMSG_LENGTH(sizeof(struct fib_rule_hdr))};
		const char *any = table[i].to ? table[i].to : table[i].from;
		m.u.rule = (struct fib_rule_hdr){.family = any && strchr(any, ':') ? AF_INET6 : AF_INET, .dst_len = (unsigned char)(table[i].to ? table[i].prefix : 0), .src_len = (unsigned char)(table[i].from ? table[i].prefix : 0), .tos = (unsigned char)table[i].tos, .action = FR_ACT_TO_TBL};
		if (table[i].to)
			ip(&m, FRA_DST, table[i].to);
		if (table[i].from)
			ip(&m, FRA_SRC, table[i].from);
		if (table[i].in)
			attribute(&m, FRA_IIFNAME, table[i].in, strlen(table[i].in) + 1);
		if (table[i].table)
			number(&m, FRA_TABLE, (unsigned)table[i].table);
		if (table[i].priority)
			number(&m, FRA_PRIORITY, (unsigned)table[i].priority);
		if (table[i].mark)
			number(&m, FRA_FWMARK, (unsigned)table[i].mark);
		say("%s: %s", table[i].what, name_of(change(s, &m, table[i].type, table[i].flags)));
		heard(table[i].what, ear);
	}
	dump("all", s, RTM_GETRULE, AF_INET, 0);
	struct message m = {.h.nlmsg_len = NLMSG_LENGTH(4)};
	m.u.rule.family = AF_INET;
	say("short: %s", name_of(change(s, &m, RTM_NEWRULE, ADD)));
	m.h.nlmsg_len = NLMSG_LENGTH(sizeof m.u.rule), m.u.rule.family = AF_UNIX;
	say("another family: %s", name_of(change(s, &m, RTM_NEWRULE, ADD)));
	IN_CHILD("another user", must(setresuid(1000, 1000, 1000), "setresuid"); m.u.rule.family = AF_INET; say("rule: %s", name_of(change(s, &m, RTM_NEWRULE, ADD))); dump("listed", s, RTM_GETRULE, AF_INET6, 0));
}

TEST(neighbors, "requests about neighbours that are refused")
{
	begin();
	int s = nl();
	static const struct {
		const char *what, *dst;
		int family, index, type, flags;
		size_t hardware;
	} table[] = {
	    {"no interface", "10.0.0.9", AF_INET, 0, RTM_NEWNEIGH, NLM_F_CREATE, 6}, {"no such interface", "10.0.0.9", AF_INET, 9999, RTM_NEWNEIGH, NLM_F_CREATE, 6}, {"no address", 0, AF_INET, 1, RTM_NEWNEIGH, NLM_F_CREATE, 6},
	    {"short hardware address", "10.0.0.9", AF_INET, 1, RTM_NEWNEIGH, NLM_F_CREATE, 3}, {"another family", "10.0.0.9", AF_UNIX, 1, RTM_NEWNEIGH, NLM_F_CREATE, 6}, {"short address", "10.0.0.9", AF_INET6, 1, RTM_NEWNEIGH, NLM_F_CREATE, 6},
	    {"not created", "10.0.0.9", AF_INET, 1, RTM_NEWNEIGH, 0, 6}, {"delete what is not there", "10.0.0.9", AF_INET, 1, RTM_DELNEIGH, 0, 0}, {"delete, no such interface", "10.0.0.9", AF_INET, 9999, RTM_DELNEIGH, 0, 0},
	};
	for (size_t i = 0; i < LEN(table); i++) {
		struct message m = {.h.nlmsg_len = NLMSG_LENGTH(sizeof(struct ndmsg))};
		m.u.neighbor = (struct ndmsg){.ndm_family = (unsigned char)table[i].family, .ndm_ifindex = table[i].index == 1 ? (int)if_nametoindex("lo") : table[i].index, .ndm_state = NUD_PERMANENT};
		if (table[i].dst)
			ip(&m, NDA_DST, table[i].dst);
		if (table[i].hardware)
			attribute(&m, NDA_LLADDR, "\2\0\0\0\0\1", table[i].hardware);
		say("%s: %s", table[i].what, name_of(change(s, &m, table[i].type, table[i].flags)));
	}
	struct arpreq r = {.arp_pa.sa_family = AF_INET, .arp_dev = "lo", .arp_ha.sa_family = ARPHRD_LOOPBACK};
	inet_pton(AF_INET, "10.0.0.9", &((struct sockaddr_in *)&r.arp_pa)->sin_addr);
	int u = (int)must(socket(AF_INET, SOCK_DGRAM, 0), "socket");
	err("SIOCGARP", ioctl(u, SIOCGARP, &r));
	err("SIOCDARP", ioctl(u, SIOCDARP, &r));
}

static void to(const char *a)
{
	struct sockaddr_in x = {AF_INET, htons(9)};
	struct sockaddr_in6 y = {AF_INET6, htons(9)};
	int six = strchr(a, ':') != NULL, family = six ? AF_INET6 : AF_INET;
	inet_pton(family, a, six ? (void *)&y.sin6_addr : (void *)&x.sin_addr);
	socklen_t n = six ? sizeof y : sizeof x;
	void *at = six ? (void *)&y : (void *)&x;
	static const int types[] = {SOCK_STREAM, SOCK_DGRAM};
	for (int i = 0; i < 2; i++) {
		int fd = (int)must(socket(family, types[i] | SOCK_NONBLOCK, 0), "socket");
		say("  %s type %d: connect %s", a, types[i], connect(fd, at, n) < 0 ? name_of(errno) : "ok");
		close(fd);
	}
	int fd = (int)must(socket(family, SOCK_DGRAM, 0), "socket");
	say("  %s: sendto %s", a, sendto(fd, "x", 1, 0, at, n) < 0 ? name_of(errno) : "ok");
	close(fd);
	fd = (int)must(socket(family, SOCK_RAW, six ? IPPROTO_ICMPV6 : IPPROTO_ICMP), "socket");
	say("  %s: raw sendto %s", a, sendto(fd, "\x08\0\0\0\0\0\0\0", 8, 0, at, n) < 0 ? name_of(errno) : "ok");
	close(fd);
	struct message m = {.h = {.nlmsg_len = NLMSG_LENGTH(sizeof(struct rtmsg)), .nlmsg_type = RTM_GETROUTE, .nlmsg_flags = NLM_F_REQUEST, .nlmsg_seq = 5}};
	m.u.route.rtm_family = (unsigned char)family, m.u.route.rtm_dst_len = six ? 128 : 32;
	ip(&m, RTA_DST, a);
	int s = nl();
	must(send(s, &m, m.h.nlmsg_len, 0), "send");
	char b[4096];
	ssize_t got = recv(s, b, sizeof b, 0);
	struct nlmsghdr *h = (void *)b;
	if (got > 0 && h->nlmsg_type == NLMSG_ERROR)
		say("  %s: get %s", a, name_of(-((struct nlmsgerr *)NLMSG_DATA(h))->error));
	else
		say("  %s: get %s", a, got > 0 ? "a route" : "nothing");
	close(s);
}

TEST(nowhere, "routes that lead nowhere")
{
	begin();
	int s = nl(), ear = nl();
	join(ear, RTNLGRP_IPV4_ROUTE), join(ear, RTNLGRP_IPV6_ROUTE);
	static const struct {
		const char *dst;
		int len, type, oif;
	} table[] = {
	    {"10.6.0.0", 16, RTN_BLACKHOLE, 0}, {"10.7.0.0", 16, RTN_UNREACHABLE, 0}, {"10.8.0.0", 16, RTN_PROHIBIT, 0}, {"10.9.0.0", 16, RTN_THROW, 0},
	    {"10.6.0.0", 16, RTN_BLACKHOLE, 0}, {"10.6.0.0", 16, RTN_UNREACHABLE, 0}, {"10.5.0.0", 16, RTN_BLACKHOLE, 1}, {"10.6.7.0", 24, RTN_UNICAST, 1}, {"10.8.1.1", 32, RTN_UNREACHABLE, 0},
	    {"2001:db8:6::", 48, RTN_BLACKHOLE, 0}, {"2001:db8:7::", 48, RTN_UNREACHABLE, 0}, {"2001:db8:8::", 48, RTN_PROHIBIT, 0}, {"2001:db8:9::", 48, RTN_THROW, 0}, {"2001:db8:7::", 48, RTN_UNREACHABLE, 0},
	};
	for (size_t i = 0; i < LEN(table); i++) {
		int six = strchr(table[i].dst, ':') != NULL;
		struct message m = {.h.nlmsg_len = NLMSG_LENGTH(sizeof(struct rtmsg))};
		m.u.route = (struct rtmsg){six ? AF_INET6 : AF_INET, (unsigned char)table[i].len, 0, 0, RT_TABLE_MAIN, RTPROT_BOOT, RT_SCOPE_UNIVERSE, (unsigned char)table[i].type, 0};
		if (table[i].type == RTN_UNICAST)
			m.u.route.rtm_scope = RT_SCOPE_LINK;
		ip(&m, RTA_DST, table[i].dst);
		if (table[i].oif)
			number(&m, RTA_OIF, if_nametoindex("lo"));
		say("%s/%d type %d: %s", table[i].dst, table[i].len, table[i].type, name_of(change(s, &m, RTM_NEWROUTE, NLM_F_CREATE | NLM_F_EXCL)));
		char b[4096];
		ssize_t n = recv(ear, b, sizeof b, 0);
		if (n > 0)
			print("told", (void *)b);
	}
	dump("main", s, RTM_GETROUTE, AF_INET, RT_TABLE_MAIN);
	static const char *const all[] = {"10.6.1.1", "10.7.1.1", "10.8.1.1", "10.8.1.2", "10.9.1.1", "10.6.7.1", "2001:db8:6::1", "2001:db8:7::1", "2001:db8:8::1", "2001:db8:9::1", "127.0.0.1"};
	for (size_t i = 0; i < LEN(all); i++)
		to(all[i]);
	FILE *f = fopen("/proc/net/route", "r");
	char line[300];
	while (f && fgets(line, sizeof line, f))
		if (line[0] == '*')
			say("%.*s|", (int)strcspn(line, "\n"), line);
	if (f)
		fclose(f);
	static const int types[] = {RTN_UNICAST, RTN_PROHIBIT, 0, RTN_BLACKHOLE};
	for (size_t i = 0; i < LEN(types); i++) {
		struct message m = {.h.nlmsg_len = NLMSG_LENGTH(sizeof(struct rtmsg))};
		m.u.route = (struct rtmsg){AF_INET, 16, 0, 0, RT_TABLE_MAIN, 0, RT_SCOPE_NOWHERE, (unsigned char)types[i], 0};
		ip(&m, RTA_DST, i == 2 ? "10.7.0.0" : "10.6.0.0");
		say("delete type %d: %s", types[i], name_of(change(s, &m, RTM_DELROUTE, 0)));
	}
	dump("left", s, RTM_GETROUTE, AF_INET, RT_TABLE_MAIN);
}
