// Program stamps tests the times of SO_TIMESTAMPING, of what is received and of what is
// sent, which the error queue tells; and SO_TXTIME and IP_UNICAST_IF.
#include "gt.h"

#include <arpa/inet.h>
#include <linux/errqueue.h>
#include <linux/net_tstamp.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/socket.h>

#define LEN(a) (sizeof(a) / sizeof *(a))

static int six;
static union {
	struct sockaddr_in four;
	struct sockaddr_in6 six;
} to;
static socklen_t to_length;

static void pair(int *a, int *b)
{
	*a = (int)must(socket(six ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0), "socket");
	*b = (int)must(socket(six ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0), "socket");
	memset(&to, 0, sizeof to);
	if (six)
		to.six = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
	else
		to.four = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	to_length = six ? sizeof to.six : sizeof to.four;
	must(bind(*b, (void *)&to, to_length), "bind");
	getsockname(*b, (void *)&to, &to_length);
}

static void take(const char *what, int s, int flags)
{
	char b[300], control[300];
	struct sockaddr_storage from;
	struct iovec v = {b, sizeof b};
	struct msghdr m = {.msg_name = &from, .msg_namelen = sizeof from, .msg_iov = &v, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
	struct pollfd p = {.fd = s, .events = flags ? 0 : POLLIN};
	poll(&p, 1, 1000);
	ssize_t n = recvmsg(s, &m, flags);
	if (n < 0) {
		say("%s: %s", what, name_of(errno));
		return;
	}
	say("%s: %zd bytes, flags %#x, ready %#x, ends with %.*s", what, n, m.msg_flags, p.revents, n < 4 ? 0 : 4, n < 4 ? "" : b + n - 4);
	if (flags && n > 14)
		say("%s: type %02x%02x version %d", what, b[12] & 255, b[13] & 255, b[14] >> 4 & 15);
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c)) {
		if (c->cmsg_level == SOL_SOCKET && (c->cmsg_type == SO_TIMESTAMPING || c->cmsg_type == SO_TIMESTAMPING_NEW)) {
			struct timespec t[3];
			memcpy(t, CMSG_DATA(c), sizeof t);
			say("%s: times of type %d length %zu: %d %d %d", what, c->cmsg_type, (size_t)c->cmsg_len, t[0].tv_sec > 1000000, t[1].tv_sec != 0, t[2].tv_sec != 0);
		} else if (c->cmsg_type == IP_RECVERR || c->cmsg_type == IPV6_RECVERR) {
			struct sock_extended_err e;
			memcpy(&e, CMSG_DATA(c), sizeof e);
			say("%s: error %s origin %d type %d code %d info %u data %u", what, name_of((int)e.ee_errno), e.ee_origin, e.ee_type, e.ee_code, e.ee_info, e.ee_data);
		} else
			say("%s: control %d/%d length %zu", what, c->cmsg_level, c->cmsg_type, (size_t)c->cmsg_len);
	}
}

static void sent(unsigned flags, const char *name)
{
	int a, b;
	pair(&a, &b);
	say("-- %s", name);
	err("set", setsockopt(a, SOL_SOCKET, SO_TIMESTAMPING, &flags, sizeof flags));
	for (int i = 0; i < 2; i++)
		num("send", sendto(a, "some text", 9, 0, (void *)&to, to_length));
	for (int i = 0; i < 5; i++)
		take("told", a, MSG_ERRQUEUE);
	close(a), close(b);
}

static void all(void)
{
	enum { TX = SOF_TIMESTAMPING_TX_SOFTWARE, SCHED = SOF_TIMESTAMPING_TX_SCHED, SOFT = SOF_TIMESTAMPING_SOFTWARE, ID = SOF_TIMESTAMPING_OPT_ID, ONLY = SOF_TIMESTAMPING_OPT_TSONLY };
	sent(TX | SOFT, "the packet with it");
	sent(TX | SOFT | ONLY, "the time only");
	sent(TX | SOFT | ONLY | ID, "numbered");
	sent(TX | SCHED | SOFT | ONLY | ID, "both times");
	sent(TX | ONLY, "not reported");
	sent(SOFT | SOF_TIMESTAMPING_RX_SOFTWARE, "of what comes only");
	sent(SOF_TIMESTAMPING_TX_HARDWARE | SOF_TIMESTAMPING_RAW_HARDWARE, "of hardware");
}

TEST(four, "times of what is sent") { all(); }
TEST(of6, "times of what is sent by IPv6")
{
	six = 1;
	all();
}

TEST(received, "times of what is received")
{
	static const struct {
		const char *name;
		unsigned flags, old, name_new;
	} table[] = {
	    {"software", SOF_TIMESTAMPING_RX_SOFTWARE | SOF_TIMESTAMPING_SOFTWARE, 0, 0}, {"both kinds", SOF_TIMESTAMPING_RX_SOFTWARE | SOF_TIMESTAMPING_SOFTWARE, SO_TIMESTAMP, 0},
	    {"not reported", SOF_TIMESTAMPING_RX_SOFTWARE, 0, 0}, {"reported by SO_TIMESTAMP", SOF_TIMESTAMPING_SOFTWARE, SO_TIMESTAMPNS, 0}, {"new", SOF_TIMESTAMPING_RX_SOFTWARE | SOF_TIMESTAMPING_SOFTWARE, 0, 1},
	};
	for (size_t i = 0; i < LEN(table); i++) {
		int a, b, one = 1;
		pair(&a, &b);
		if (table[i].old)
			must(setsockopt(b, SOL_SOCKET, table[i].old, &one, sizeof one), "old");
		err(table[i].name, setsockopt(b, SOL_SOCKET, table[i].name_new ? SO_TIMESTAMPING_NEW : SO_TIMESTAMPING, &table[i].flags, sizeof table[i].flags));
		sleep_ms(100); // Linux begins to take times a little later
		sendto(a, "text", 4, 0, (void *)&to, to_length);
		take(table[i].name, b, 0);
		close(a), close(b);
	}
}

TEST(connected, "numbers begin anew with the option")
{
	int a, b;
	unsigned flags = SOF_TIMESTAMPING_TX_SOFTWARE | SOF_TIMESTAMPING_SOFTWARE | SOF_TIMESTAMPING_OPT_TSONLY | SOF_TIMESTAMPING_OPT_ID, off = flags & ~SOF_TIMESTAMPING_OPT_ID;
	pair(&a, &b);
	must(connect(a, (void *)&to, to_length), "connect");
	for (int i = 0; i < 3; i++) {
		setsockopt(a, SOL_SOCKET, SO_TIMESTAMPING, i == 1 ? &off : &flags, sizeof flags);
		send(a, "1234", 4, 0);
		send(a, "1234", 4, 0);
		take("told", a, MSG_ERRQUEUE);
		take("told", a, MSG_ERRQUEUE);
	}
	send(a, "1234", 4, 0);
	char x[10];
	num("an ordinary receive", recv(a, x, sizeof x, 0));
	take("it stays", a, MSG_ERRQUEUE);
}

TEST(unicast, "the interface for unicast")
{
	int a, b;
	uint32_t lo = htonl(if_nametoindex("lo")), none = htonl(9999), v;
	socklen_t n = sizeof v;
	pair(&a, &b);
	err("no such interface", setsockopt(a, IPPROTO_IP, IP_UNICAST_IF, &none, sizeof none));
	err("lo", setsockopt(a, IPPROTO_IP, IP_UNICAST_IF, &lo, sizeof lo));
	err("get", getsockopt(a, IPPROTO_IP, IP_UNICAST_IF, &v, &n));
	say("%d", v == lo);
	num("send", sendto(a, "text", 4, 0, (void *)&to, to_length));
	take("recv", b, 0);
	struct sockaddr_in far = {.sin_family = AF_INET, .sin_port = htons(9), .sin_addr.s_addr = htonl(0xc0000201)};
	err("connect", connect(a, (void *)&to, to_length));
	num("send", send(a, "text", 4, 0));
	take("recv", b, 0);
}
