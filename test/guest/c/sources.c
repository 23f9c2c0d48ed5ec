// Program sources tests sources of multicast groups: who is heard, what the options
// answer, and what /proc/net/mcfilter says.
#include "gt.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#define MODE_INCLUDE 1
#define MODE_EXCLUDE 0

static const char *group = "232.7.7.7", *group6 = "ff02::7:7";

static int udp(int family, int port)
{
	int fd = must(socket(family, SOCK_DGRAM, 0), "socket"), on = 1;
	alarm(30);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
	struct sockaddr_in a = {AF_INET, htons(port)};
	struct sockaddr_in6 b = {AF_INET6, htons(port)};
	must(bind(fd, family == AF_INET ? (void *)&a : (void *)&b, family == AF_INET ? sizeof a : sizeof b), "bind");
	return fd;
}

// from sends a datagram from an address of lo to the group.
static void from(const char *source, int port, const char *text)
{
	int fd = must(socket(AF_INET, SOCK_DGRAM, 0), "socket"), lo = 1;
	struct sockaddr_in a = {AF_INET}, to = {AF_INET, htons(port)};
	struct ip_mreqn m = {.imr_ifindex = lo};
	inet_pton(AF_INET, source, &a.sin_addr);
	inet_pton(AF_INET, group, &to.sin_addr);
	must(bind(fd, (void *)&a, sizeof a), "bind");
	must(setsockopt(fd, IPPROTO_IP, IP_MULTICAST_IF, &m, sizeof m), "IP_MULTICAST_IF");
	must(sendto(fd, text, strlen(text), 0, (void *)&to, sizeof to), "sendto");
	close(fd);
}

static void from6(const char *source, int port, const char *text)
{
	int fd = must(socket(AF_INET6, SOCK_DGRAM, 0), "socket"), lo = 1;
	struct sockaddr_in6 a = {AF_INET6}, to = {AF_INET6, htons(port)};
	inet_pton(AF_INET6, source, &a.sin6_addr);
	inet_pton(AF_INET6, group6, &to.sin6_addr);
	to.sin6_scope_id = 1;
	must(bind(fd, (void *)&a, sizeof a), "bind");
	must(setsockopt(fd, IPPROTO_IPV6, IPV6_MULTICAST_IF, &lo, sizeof lo), "IPV6_MULTICAST_IF");
	err("sendto", sendto(fd, text, strlen(text), 0, (void *)&to, sizeof to) < 0 ? -1 : 0);
	close(fd);
}

static void heard(const char *who, int fd)
{
	char buf[64], all[256] = "";
	ssize_t n;
	while ((n = recv(fd, buf, sizeof buf - 1, MSG_DONTWAIT)) >= 0)
		buf[n] = 0, strcat(all, " "), strcat(all, buf);
	say("%s:%s", who, *all ? all : " nothing");
}

static void both(int port)
{
	from("127.0.0.1", port, "one");
	from("127.0.0.2", port, "two");
	from("127.0.0.3", port, "three");
}

static int source(int fd, int name, const char *from)
{
	struct ip_mreq_source m = {.imr_interface = {htonl(INADDR_LOOPBACK)}};
	inet_pton(AF_INET, group, &m.imr_multiaddr);
	inet_pton(AF_INET, from, &m.imr_sourceaddr);
	return setsockopt(fd, IPPROTO_IP, name, &m, sizeof m);
}

static int member(int fd, int name)
{
	struct ip_mreqn m = {.imr_ifindex = 1};
	inet_pton(AF_INET, group, &m.imr_multiaddr);
	return setsockopt(fd, IPPROTO_IP, name, &m, sizeof m);
}

static void list(int fd, unsigned room)
{
	char buf[sizeof(struct ip_msfilter) + 64] = {0};
	struct ip_msfilter *f = (void *)buf;
	socklen_t n = sizeof buf;
	char a[32];
	inet_pton(AF_INET, group, &f->imsf_multiaddr);
	f->imsf_interface.s_addr = htonl(INADDR_LOOPBACK);
	f->imsf_numsrc = room;
	int r = getsockopt(fd, IPPROTO_IP, IP_MSFILTER, buf, &n);
	if (r < 0) {
		say("list: %s", name_of(errno));
		return;
	}
	say("list: mode %u, %u sources, length %u", f->imsf_fmode, f->imsf_numsrc, n);
	for (unsigned i = 0; i < f->imsf_numsrc && i < room; i++)
		say("  %s", inet_ntop(AF_INET, &f->imsf_slist[i], a, sizeof a));
}

static int filter(int fd, unsigned mode, int n, const char *const *from)
{
	char buf[sizeof(struct ip_msfilter) + 128] = {0};
	struct ip_msfilter *f = (void *)buf;
	inet_pton(AF_INET, group, &f->imsf_multiaddr);
	f->imsf_interface.s_addr = htonl(INADDR_LOOPBACK);
	f->imsf_fmode = mode, f->imsf_numsrc = n;
	for (int i = 0; i < n; i++)
		inet_pton(AF_INET, from[i], &f->imsf_slist[i]);
	return setsockopt(fd, IPPROTO_IP, IP_MSFILTER, buf, IP_MSFILTER_SIZE(n));
}

static void file(const char *name)
{
	char buf[4096];
	FILE *f = fopen(name, "r");
	while (f && fgets(buf, sizeof buf, f))
		say("%s: %.*s", name, (int)strcspn(buf, "\n"), buf);
	if (f)
		fclose(f);
}

TEST(include, "only some sources are heard")
{
	int fd = udp(AF_INET, 5701);
	err("drop before", source(fd, IP_DROP_SOURCE_MEMBERSHIP, "127.0.0.1"));
	err("block before", source(fd, IP_BLOCK_SOURCE, "127.0.0.1"));
	list(fd, 4);
	err("one", source(fd, IP_ADD_SOURCE_MEMBERSHIP, "127.0.0.1"));
	err("again", source(fd, IP_ADD_SOURCE_MEMBERSHIP, "127.0.0.1"));
	both(5701);
	heard("one", fd);
	err("three", source(fd, IP_ADD_SOURCE_MEMBERSHIP, "127.0.0.3"));
	both(5701);
	heard("one and three", fd);
	list(fd, 0), list(fd, 1), list(fd, 8);
	file("/proc/net/mcfilter");
	err("block in this mode", source(fd, IP_BLOCK_SOURCE, "127.0.0.2"));
	err("unblock in this mode", source(fd, IP_UNBLOCK_SOURCE, "127.0.0.2"));
	err("drop another", source(fd, IP_DROP_SOURCE_MEMBERSHIP, "127.0.0.2"));
	err("drop one", source(fd, IP_DROP_SOURCE_MEMBERSHIP, "127.0.0.1"));
	both(5701);
	heard("three", fd);
	err("drop three", source(fd, IP_DROP_SOURCE_MEMBERSHIP, "127.0.0.3"));
	list(fd, 4);
	err("leave", member(fd, IP_DROP_MEMBERSHIP));
	file("/proc/net/mcfilter");
}

TEST(exclude, "some sources are not heard")
{
	int fd = udp(AF_INET, 5702), other = udp(AF_INET, 5702);
	err("join", member(fd, IP_ADD_MEMBERSHIP));
	list(fd, 4);
	err("unblock before", source(fd, IP_UNBLOCK_SOURCE, "127.0.0.2"));
	err("block", source(fd, IP_BLOCK_SOURCE, "127.0.0.2"));
	err("block again", source(fd, IP_BLOCK_SOURCE, "127.0.0.2"));
	both(5702);
	heard("not two", fd);
	heard("a socket that is not in the group", other);
	int off = 0;
	err("IP_MULTICAST_ALL", setsockopt(other, IPPROTO_IP, IP_MULTICAST_ALL, &off, sizeof off));
	both(5702);
	heard("not two", fd);
	heard("that wants its groups only", other);
	list(fd, 4);
	file("/proc/net/mcfilter");
	err("add in this mode", source(fd, IP_ADD_SOURCE_MEMBERSHIP, "127.0.0.1"));
	err("unblock", source(fd, IP_UNBLOCK_SOURCE, "127.0.0.2"));
	both(5702);
	heard("all", fd);
	list(fd, 4);
	err("another mode", source(fd, IP_ADD_SOURCE_MEMBERSHIP, "127.0.0.1"));
	list(fd, 4);
	both(5702);
	heard("after that", fd);
	err("leave", member(fd, IP_DROP_MEMBERSHIP));
}

TEST(lists, "IP_MSFILTER")
{
	static const char *const some[] = {"127.0.0.3", "127.0.0.1", "127.0.0.9", "1.1.1.1", "2.2.2.2", "3.3.3.3", "4.4.4.4", "5.5.5.5", "6.6.6.6", "7.7.7.7", "8.8.8.8"};
	int fd = udp(AF_INET, 5703);
	err("before", filter(fd, MODE_EXCLUDE, 1, some));
	err("nobody before", filter(fd, MODE_INCLUDE, 0, some));
	err("join", member(fd, IP_ADD_MEMBERSHIP));
	err("mode 2", filter(fd, 2, 1, some));
	err("two of them", filter(fd, MODE_INCLUDE, 2, some));
	list(fd, 8);
	both(5703);
	heard("two of them", fd);
	err("not these", filter(fd, MODE_EXCLUDE, 2, some));
	list(fd, 8);
	both(5703);
	heard("not these", fd);
	err("ten", filter(fd, MODE_EXCLUDE, 10, some));
	err("eleven", filter(fd, MODE_EXCLUDE, 11, some));
	list(fd, 3);
	err("one more", source(fd, IP_BLOCK_SOURCE, "9.9.9.9"));
	file("/proc/net/mcfilter");
	err("all", filter(fd, MODE_EXCLUDE, 0, some));
	both(5703);
	heard("all", fd);
	err("nobody", filter(fd, MODE_INCLUDE, 0, some));
	list(fd, 3);
	char b[20] = {0};
	err("short", setsockopt(fd, IPPROTO_IP, IP_MSFILTER, b, 12));
	err("not a group", setsockopt(fd, IPPROTO_IP, IP_MSFILTER, b, 16));
	b[0] = (char)232, b[12] = 3;
	err("fewer than it says", setsockopt(fd, IPPROTO_IP, IP_MSFILTER, b, 20));
	socklen_t n = 8;
	err("short", getsockopt(fd, IPPROTO_IP, IP_MSFILTER, b, &n));
	struct ip_mreq_source m = {0};
	err("no group", setsockopt(fd, IPPROTO_IP, IP_BLOCK_SOURCE, &m, sizeof m));
	err("length", setsockopt(fd, IPPROTO_IP, IP_BLOCK_SOURCE, &m, 8));
}

static int request(int fd, int name, const char *from)
{
	struct group_source_req r;
	memset(&r, 0, sizeof r);
	r.gsr_interface = 1;
	struct sockaddr_in6 *g = (void *)&r.gsr_group, *s = (void *)&r.gsr_source;
	g->sin6_family = s->sin6_family = AF_INET6;
	inet_pton(AF_INET6, group6, &g->sin6_addr);
	inet_pton(AF_INET6, from, &s->sin6_addr);
	return setsockopt(fd, IPPROTO_IPV6, name, &r, sizeof r);
}

static void list6(int fd, int room)
{
	static char buf[GROUP_FILTER_SIZE(8)];
	struct group_filter *f = (void *)buf;
	socklen_t n = sizeof buf;
	char a[64];
	memset(buf, 0, sizeof buf);
	f->gf_interface = 1, f->gf_numsrc = room;
	((struct sockaddr_in6 *)&f->gf_group)->sin6_family = AF_INET6;
	inet_pton(AF_INET6, group6, &((struct sockaddr_in6 *)&f->gf_group)->sin6_addr);
	if (getsockopt(fd, IPPROTO_IPV6, MCAST_MSFILTER, buf, &n) < 0) {
		say("list: %s", name_of(errno));
		return;
	}
	say("list: mode %u, %u sources, length %u", f->gf_fmode, f->gf_numsrc, n);
	for (unsigned i = 0; i < f->gf_numsrc && i < (unsigned)room; i++) {
		struct sockaddr_in6 *s = (void *)&f->gf_slist[i];
		say("  %d %s", s->sin6_family, inet_ntop(AF_INET6, &s->sin6_addr, a, sizeof a));
	}
}

TEST(six, "sources of groups of IPv6")
{
	int fd = udp(AF_INET6, 5704);
	list6(fd, 2);
	err("leave before", request(fd, MCAST_LEAVE_SOURCE_GROUP, "::1"));
	err("another only", request(fd, MCAST_JOIN_SOURCE_GROUP, "fe80::7"));
	from6("::1", 5704, "one");
	heard("another only", fd);
	err("and this", request(fd, MCAST_JOIN_SOURCE_GROUP, "::1"));
	err("again", request(fd, MCAST_JOIN_SOURCE_GROUP, "::1"));
	from6("::1", 5704, "two");
	heard("and this", fd);
	list6(fd, 1), list6(fd, 4);
	file("/proc/net/mcfilter6");
	err("block in this mode", request(fd, MCAST_BLOCK_SOURCE, "::1"));
	err("not this", request(fd, MCAST_LEAVE_SOURCE_GROUP, "::1"));
	from6("::1", 5704, "three");
	heard("not this", fd);
	err("nor another", request(fd, MCAST_LEAVE_SOURCE_GROUP, "fe80::7"));
	list6(fd, 2);
	struct ipv6_mreq m = {.ipv6mr_interface = 1};
	inet_pton(AF_INET6, group6, &m.ipv6mr_multiaddr);
	err("join", setsockopt(fd, IPPROTO_IPV6, IPV6_ADD_MEMBERSHIP, &m, sizeof m));
	err("block", request(fd, MCAST_BLOCK_SOURCE, "::1"));
	from6("::1", 5704, "four");
	heard("blocked", fd);
	err("unblock", request(fd, MCAST_UNBLOCK_SOURCE, "::1"));
	from6("::1", 5704, "five");
	heard("unblocked", fd);
	list6(fd, 2);
	int off = 0, other = udp(AF_INET6, 5704);
	from6("::1", 5704, "six");
	heard("not in the group", other);
	err("IPV6_MULTICAST_ALL", setsockopt(other, IPPROTO_IPV6, IPV6_MULTICAST_ALL, &off, sizeof off));
	from6("::1", 5704, "seven");
	heard("its groups only", other);
	both(5704);
	heard("groups of IPv4 that it has not joined", other);
	char b[300] = {0};
	err("length", setsockopt(fd, IPPROTO_IPV6, MCAST_BLOCK_SOURCE, b, 263));
	err("family", setsockopt(fd, IPPROTO_IPV6, MCAST_BLOCK_SOURCE, b, 264));
	err("short", setsockopt(fd, IPPROTO_IPV6, MCAST_MSFILTER, b, 100));
	err("family", setsockopt(fd, IPPROTO_IPV6, MCAST_MSFILTER, b, 144));
}
