// Program sockfilter tests SO_ATTACH_FILTER: which programs are taken and what
// they let through.
#include "gt.h"

#include <arpa/inet.h>
#include <linux/filter.h>
#include <linux/icmp.h>
#include <netinet/in.h>
#include <sys/socket.h>

static int attach_(int fd, const struct sock_filter *code, int n)
{
	struct sock_fprog p = {(unsigned short)n, (struct sock_filter *)code};
	return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &p, sizeof p);
}
#define ATTACH(fd, ...)                                          \
	({                                                       \
		const struct sock_filter gt_code[] = {__VA_ARGS__}; \
		attach_(fd, gt_code, sizeof gt_code / sizeof *gt_code); \
	})

static int a, b; // of UDP; a sends to b

static void sockets(void)
{
	struct sockaddr_in to = {AF_INET, 0, {htonl(INADDR_LOOPBACK)}};
	socklen_t len = sizeof to;
	b = must(socket(AF_INET, SOCK_DGRAM, 0), "socket");
	must(bind(b, (void *)&to, sizeof to), "bind");
	getsockname(b, (void *)&to, &len);
	a = must(socket(AF_INET, SOCK_DGRAM, 0), "socket");
	must(connect(a, (void *)&to, sizeof to), "connect");
	alarm(20);
}

static void got(const char *what)
{
	char buf[64];
	int n = 0;
	struct pollfd p = {b, POLLIN};
	int ready = poll(&p, 1, 100);
	ioctl(b, FIONREAD, &n);
	ssize_t r = recv(b, buf, sizeof buf, MSG_DONTWAIT | MSG_TRUNC);
	say("%s: poll %d, FIONREAD %d, recv %zd %s %.*s", what, ready, n, r, r < 0 ? name_of(errno) : "", r > 0 ? (int)r : 0, buf);
}

TEST(udp, "what a filter lets through")
{
	sockets();
	err("none to detach", setsockopt(b, SOL_SOCKET, SO_DETACH_FILTER, &a, sizeof a));
	err("all dropped", ATTACH(b, BPF_STMT(BPF_RET | BPF_K, 0)));
	send(a, "one", 3, 0);
	got("dropped");
	err("first byte of data", ATTACH(b, BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 8), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 'x', 0, 1),
		BPF_STMT(BPF_RET | BPF_K, 0xffff), BPF_STMT(BPF_RET | BPF_K, 0)));
	send(a, "yes", 3, 0);
	send(a, "xno", 3, 0);
	send(a, "xyz", 3, 0);
	got("with x");
	got("again");
	got("no more");
	err("length", ATTACH(b, BPF_STMT(BPF_LD | BPF_W | BPF_LEN, 0), BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, 12, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, 10), BPF_STMT(BPF_RET | BPF_K, 0)));
	send(a, "1234", 4, 0);
	send(a, "12345", 5, 0);
	got("cut");
	err("UDP's length", ATTACH(b, BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 4), BPF_STMT(BPF_RET | BPF_A, 0)));
	send(a, "abcdef", 6, 0);
	got("its own length");
	err("IP's protocol", ATTACH(b, BPF_STMT(BPF_LD | BPF_B | BPF_ABS, SKF_NET_OFF + 9),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, IPPROTO_UDP, 0, 1), BPF_STMT(BPF_RET | BPF_K, -1u), BPF_STMT(BPF_RET | BPF_K, 0)));
	send(a, "udp", 3, 0);
	got("of UDP");
	err("Ethernet's type", ATTACH(b, BPF_STMT(BPF_LD | BPF_W | BPF_ABS, SKF_AD_OFF + SKF_AD_PROTOCOL),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0x0800, 0, 1), BPF_STMT(BPF_RET | BPF_K, -1u), BPF_STMT(BPF_RET | BPF_K, 0)));
	send(a, "ip", 2, 0);
	got("of IP");
	err("detach", setsockopt(b, SOL_SOCKET, SO_DETACH_FILTER, &a, sizeof a));
	send(a, "free", 4, 0);
	got("without");
}

TEST(locking, "SO_LOCK_FILTER and SO_GET_FILTER")
{
	sockets();
	int one = 1, zero = 0;
	struct sock_filter out[4];
	socklen_t len = 0;
	err("attach", ATTACH(b, BPF_STMT(BPF_LD | BPF_IMM, 5), BPF_STMT(BPF_RET | BPF_A, 0)));
	err("how long", getsockopt(b, SOL_SOCKET, SO_GET_FILTER, NULL, &len));
	say("%u", len);
	len = 1;
	err("no room", getsockopt(b, SOL_SOCKET, SO_GET_FILTER, out, &len));
	len = 4;
	err("get", getsockopt(b, SOL_SOCKET, SO_GET_FILTER, out, &len));
	say("%u: %#x %u, %#x", len, out[0].code, out[0].k, out[1].code);
	err("lock", setsockopt(b, SOL_SOCKET, SO_LOCK_FILTER, &one, sizeof one));
	err("lock again", setsockopt(b, SOL_SOCKET, SO_LOCK_FILTER, &one, sizeof one));
	err("unlock", setsockopt(b, SOL_SOCKET, SO_LOCK_FILTER, &zero, sizeof zero));
	err("attach", ATTACH(b, BPF_STMT(BPF_RET | BPF_K, 0)));
	err("detach", setsockopt(b, SOL_SOCKET, SO_DETACH_FILTER, &zero, sizeof zero));
}

TEST(refused, "programs that are refused")
{
	sockets();
	static const struct sock_filter programs[][3] = {
		{BPF_STMT(BPF_LD | BPF_IMM, 1)},
		{BPF_STMT(BPF_RET | BPF_X, 0)},
		{BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 1, 5, 0), BPF_STMT(BPF_RET | BPF_K, 0), BPF_STMT(BPF_RET | BPF_K, 0)},
		{BPF_STMT(BPF_JMP | BPF_JA, 2), BPF_STMT(BPF_RET | BPF_K, 0), BPF_STMT(BPF_RET | BPF_K, 0)},
		{BPF_STMT(BPF_JMP | BPF_JA, 1), BPF_STMT(BPF_RET | BPF_K, 0), BPF_STMT(BPF_RET | BPF_K, 0)},
		{BPF_STMT(BPF_ALU | BPF_DIV | BPF_K, 0), BPF_STMT(BPF_RET | BPF_K, 0), BPF_STMT(BPF_RET | BPF_K, 0)},
		{BPF_STMT(BPF_ALU | BPF_MOD | BPF_K, 0), BPF_STMT(BPF_RET | BPF_K, 0), BPF_STMT(BPF_RET | BPF_K, 0)},
		{BPF_STMT(BPF_ALU | BPF_LSH | BPF_K, 31), BPF_STMT(BPF_RET | BPF_K, 0), BPF_STMT(BPF_RET | BPF_K, 0)},
		{BPF_STMT(BPF_ALU | BPF_RSH | BPF_K, 32), BPF_STMT(BPF_RET | BPF_K, 0), BPF_STMT(BPF_RET | BPF_K, 0)},
		{BPF_STMT(BPF_ST, 15), BPF_STMT(BPF_LDX | BPF_MEM, 15), BPF_STMT(BPF_RET | BPF_K, 0)},
		{BPF_STMT(BPF_ST, 16), BPF_STMT(BPF_RET | BPF_K, 0), BPF_STMT(BPF_RET | BPF_K, 0)},
		{BPF_STMT(BPF_LD | BPF_MEM, 3), BPF_STMT(BPF_RET | BPF_K, 0), BPF_STMT(BPF_RET | BPF_K, 0)},
		{BPF_STMT(BPF_LD | BPF_W | BPF_ABS, -1u), BPF_STMT(BPF_RET | BPF_K, 0), BPF_STMT(BPF_RET | BPF_K, 0)},
		{BPF_STMT(BPF_LD | BPF_B | BPF_MSH, 0), BPF_STMT(BPF_RET | BPF_K, 0), BPF_STMT(BPF_RET | BPF_K, 0)},
		{BPF_STMT(BPF_LDX | BPF_W | BPF_ABS, 0), BPF_STMT(BPF_RET | BPF_K, 0), BPF_STMT(BPF_RET | BPF_K, 0)},
		{BPF_STMT(BPF_ALU | BPF_NEG | BPF_X, 0), BPF_STMT(BPF_RET | BPF_K, 0), BPF_STMT(BPF_RET | BPF_K, 0)},
		{BPF_STMT(0x1000, 0), BPF_STMT(BPF_RET | BPF_K, 0), BPF_STMT(BPF_RET | BPF_K, 0)},
	};
	char what[40];
	for (unsigned i = 0; i < sizeof programs / sizeof *programs; i++) {
		sprintf(what, "%u", i);
		err(what, attach_(b, programs[i], i < 2 ? 1 : 3));
	}
	err("no instruction", attach_(b, programs[0], 0));
	err("too many", attach_(b, programs[0], 4097));
	struct sock_fprog p = {1, (void *)1};
	err("bad pointer", setsockopt(b, SOL_SOCKET, SO_ATTACH_FILTER, &p, sizeof p));
	err("short", setsockopt(b, SOL_SOCKET, SO_ATTACH_FILTER, &p, sizeof p - 1));
	err("long", setsockopt(b, SOL_SOCKET, SO_ATTACH_FILTER, &p, sizeof p + 1));
}

TEST(icmp, "ICMP_FILTER")
{
	b = must(socket(AF_INET, SOCK_RAW, IPPROTO_ICMP), "socket");
	struct sockaddr_in to = {AF_INET, 0, {htonl(INADDR_LOOPBACK)}};
	struct icmphdr echo = {.type = ICMP_ECHO, .checksum = 0xfff7};
	struct icmp_filter f = {1 << ICMP_ECHO};
	alarm(20);
	err("set", setsockopt(b, SOL_RAW, 1, &f, sizeof f));
	num("send", sendto(b, &echo, sizeof echo, 0, (void *)&to, sizeof to));
	for (int i = 0; i < 2; i++) {
		unsigned char in[100];
		struct pollfd p = {b, POLLIN};
		poll(&p, 1, i ? 100 : 2000);
		ssize_t n = recv(b, in, sizeof in, MSG_DONTWAIT);
		say("%zd %s, type %d", n, n < 0 ? name_of(errno) : "", n > 20 ? in[20] : -1);
	}
}
