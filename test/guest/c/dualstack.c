// Program dualstack tests IPv6 sockets that also serve IPv4, and IPV6_V6ONLY.
#include "gt.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

static struct sockaddr_in four(int port)
{
	return (struct sockaddr_in){AF_INET, htons(port), {htonl(INADDR_LOOPBACK)}};
}

static struct sockaddr_in6 six(const char *ip, int port)
{
	struct sockaddr_in6 a = {AF_INET6, htons(port)};
	inet_pton(AF_INET6, ip, &a.sin6_addr);
	return a;
}

static int only(int fd, int on) { return setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on); }

static int is_only(int fd)
{
	int on = -1;
	socklen_t len = sizeof on;
	getsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, &len);
	return on;
}

static int port_of(int fd)
{
	struct sockaddr_in6 a;
	socklen_t len = sizeof a;
	getsockname(fd, (void *)&a, &len);
	return ntohs(a.sin6_port);
}

// show prints an address without its port.
static void show(const char *what, const void *addr, socklen_t len)
{
	char text[64] = "?";
	const struct sockaddr *a = addr;
	if (len == 0)
		strcpy(text, "none");
	else if (a->sa_family == AF_INET)
		inet_ntop(AF_INET, &((struct sockaddr_in *)addr)->sin_addr, text, sizeof text);
	else if (a->sa_family == AF_INET6)
		inet_ntop(AF_INET6, &((struct sockaddr_in6 *)addr)->sin6_addr, text, sizeof text);
	say("%s: %s, %u bytes", what, text, len);
}

static void names(int fd)
{
	struct sockaddr_storage a;
	socklen_t len = sizeof a;
	if (err("getsockname", getsockname(fd, (void *)&a, &len)) == 0)
		show("  own", &a, len);
	len = sizeof a;
	if (err("getpeername", getpeername(fd, (void *)&a, &len)) == 0)
		show("  peer", &a, len);
}

static const struct { const char *name; int type; } kinds[] = {{"tcp", SOCK_STREAM}, {"udp", SOCK_DGRAM}};

TEST(setting, "when IPV6_V6ONLY can be set")
{
	for (int i = 0; i < 2; i++) {
		say("%s", kinds[i].name);
		int fd = socket(AF_INET6, kinds[i].type, 0);
		say("at first %d", is_only(fd));
		err("set", only(fd, 1));
		say("now %d", is_only(fd));
		err("clear", only(fd, 0));
		err("set to 7", only(fd, 7));
		say("now %d", is_only(fd));
		char small = 1;
		err("a byte", setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &small, 1));
		struct sockaddr_in6 a = six("::1", 0);
		err("bind", bind(fd, (void *)&a, sizeof a));
		err("set after bind", only(fd, 1));
		err("clear after bind", only(fd, 0));
		say("now %d", is_only(fd));
		int v4 = socket(AF_INET, kinds[i].type, 0);
		err("on IPv4", only(v4, 1));
	}
	int fd = socket(AF_INET6, SOCK_DGRAM, 0);
	struct sockaddr_in6 a = six("::1", 9);
	err("connect", connect(fd, (void *)&a, sizeof a));
	err("set after connect", only(fd, 1));
	struct sockaddr none = {AF_UNSPEC};
	err("disconnect", connect(fd, &none, sizeof none));
	err("set after disconnect", only(fd, 1));
	fd = socket(AF_INET6, SOCK_DGRAM, 0);
	num("send", sendto(fd, "x", 1, 0, (void *)&a, sizeof a));
	err("set after send", only(fd, 1));
	int l = socket(AF_INET6, SOCK_STREAM, 0);
	err("listen", listen(l, 1));
	err("set after listen", only(l, 1));
	a = six("::1", port_of(l));
	fd = socket(AF_INET6, SOCK_STREAM, 0);
	err("connect", connect(fd, (void *)&a, sizeof a));
	err("set after connect", only(fd, 1));
	fd = socket(AF_INET6, SOCK_RAW, IPPROTO_ICMPV6);
	err("raw", only(fd, 1));
}

// Two sockets at one port, as dnsmasq and iperf3 have them.
TEST(sharing, "IPv4 and IPv6 at one port")
{
	for (int i = 0; i < 2; i++) {
		say("%s", kinds[i].name);
		for (int on = 0; on < 2; on++) {
			int x = socket(AF_INET6, kinds[i].type, 0), y = socket(AF_INET, kinds[i].type, 0);
			say("v6only %d: %s", on, name_of(only(x, on) ? errno : 0));
			struct sockaddr_in6 a = six("::", 0);
			err("bind [::]", bind(x, (void *)&a, sizeof a));
			struct sockaddr_in b = four(port_of(x));
			b.sin_addr.s_addr = INADDR_ANY;
			err("bind 0.0.0.0", bind(y, (void *)&b, sizeof b));
			int z = socket(AF_INET, kinds[i].type, 0);
			b = four(port_of(x));
			err("bind 127.0.0.1", bind(z, (void *)&b, sizeof b));
			close(x), close(y), close(z);
		}
		int x = socket(AF_INET6, kinds[i].type, 0);
		only(x, 1);
		struct sockaddr_in6 a = six("::ffff:127.0.0.1", 0);
		err("v6only, bind ::ffff:127.0.0.1", bind(x, (void *)&a, sizeof a));
		x = socket(AF_INET6, kinds[i].type, 0);
		err("bind ::ffff:127.0.0.1", bind(x, (void *)&a, sizeof a));
		struct sockaddr_in b = four(0);
		x = socket(AF_INET6, kinds[i].type, 0);
		err("bind of an IPv4 address", bind(x, (void *)&b, sizeof b));
		err("bind of a short address", bind(x, (void *)&a, 20));
	}
}

static void receive(int fd)
{
	char text[16];
	struct sockaddr_storage from;
	socklen_t len = sizeof from;
	struct pollfd p = {fd, POLLIN};
	if (poll(&p, 1, 500) == 0) {
		say("nothing came");
		return;
	}
	ssize_t n = recvfrom(fd, text, sizeof text, 0, (void *)&from, &len);
	if (n < 0) {
		say("recvfrom: %s", name_of(errno));
		return;
	}
	say("received \"%.*s\"", (int)n, text);
	show("from", &from, len);
}

TEST(datagrams, "datagrams between the families")
{
	for (int on = 0; on < 2; on++) {
		say("v6only %d", on);
		int x = socket(AF_INET6, SOCK_DGRAM, 0), y = socket(AF_INET, SOCK_DGRAM, 0);
		only(x, on);
		struct sockaddr_in6 a = six("::", 0);
		must(bind(x, (void *)&a, sizeof a), "bind");
		struct sockaddr_in b = four(port_of(x)), c = four(0);
		must(bind(y, (void *)&c, sizeof c), "bind");
		num("IPv4 to IPv6", sendto(y, "four", 4, 0, (void *)&b, sizeof b));
		if (!on)
			receive(x);
		b = four(port_of(y));
		num("IPv6 to mapped", ({ a = six("::ffff:127.0.0.1", port_of(y)); sendto(x, "mapped", 6, 0, (void *)&a, sizeof a); }));
		if (!on)
			receive(y);
		num("IPv6 to IPv4", sendto(x, "plain", 5, 0, (void *)&b, sizeof b));
		if (!on)
			receive(y);
		err("connect to mapped", connect(x, (void *)&a, sizeof a));
		names(x);
		x = socket(AF_INET6, SOCK_DGRAM, 0);
		only(x, on);
		err("connect to IPv4", connect(x, (void *)&b, sizeof b));
		names(x);
		num("send", send(x, "sent", 4, 0));
		if (!on)
			receive(y);
		a = six("::1", port_of(y));
		err("connect to IPv6", connect(x, (void *)&a, sizeof a));
	}
	int x = socket(AF_INET6, SOCK_DGRAM, 0), y = socket(AF_INET, SOCK_DGRAM, 0);
	struct sockaddr_in6 a = six("::1", 9);
	struct sockaddr_in b = four(9);
	err("IPv4 connects to IPv6", connect(y, (void *)&a, sizeof a));
	num("IPv4 sends to IPv6", sendto(y, "x", 1, 0, (void *)&a, sizeof a));
	err("a short IPv4 address", connect(x, (void *)&b, 8));
	num("sent to a short IPv4 address", sendto(x, "x", 1, 0, (void *)&b, 8));
	err("a short IPv6 address", connect(x, (void *)&a, 16));
	num("sent to a short IPv6 address", sendto(x, "x", 1, 0, (void *)&a, 16));
	num("port 0", ({ a = six("::1", 0); sendto(x, "x", 1, 0, (void *)&a, sizeof a); }));
	a = six("::1", 9);
	a.sin6_family = 77;
	err("another family", connect(x, (void *)&a, sizeof a));
	num("sent to another family", sendto(x, "x", 1, 0, (void *)&a, sizeof a));
}

TEST(streams, "connections between the families")
{
	for (int on = 0; on < 2; on++) {
		say("v6only %d", on);
		int l = socket(AF_INET6, SOCK_STREAM, 0);
		only(l, on);
		struct sockaddr_in6 a = six("::", 0);
		must(bind(l, (void *)&a, sizeof a), "bind");
		must(listen(l, 2), "listen");
		struct sockaddr_in b = four(port_of(l));
		int y = socket(AF_INET, SOCK_STREAM, 0);
		err("IPv4 connects", connect(y, (void *)&b, sizeof b));
		if (!on) {
			int fd = accept(l, NULL, NULL);
			names(fd);
		}
		int x = socket(AF_INET6, SOCK_STREAM, 0);
		only(x, on);
		a = six("::ffff:127.0.0.1", port_of(l));
		err("IPv6 connects to mapped", connect(x, (void *)&a, sizeof a));
		x = socket(AF_INET6, SOCK_STREAM, 0);
		only(x, on);
		err("IPv6 connects to IPv4", connect(x, (void *)&b, sizeof b));
		names(x);
		a = six("::1", port_of(l));
		x = socket(AF_INET6, SOCK_STREAM, 0);
		err("IPv6 connects", connect(x, (void *)&a, sizeof a));
	}
}
