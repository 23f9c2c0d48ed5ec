// Program rawsocket tests raw sockets of protocols that nothing else in the kernel knows.
#include "gt.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <sys/socket.h>

#define LEN(a) (sizeof(a) / sizeof *(a))

TEST(protocols, "which protocols a raw socket may have")
{
	static const int table[] = {0, 1, 2, 6, 17, 47, 50, 132, 136, 253, 254, 255, 256, 262, 263, 1000, -1};
	for (int six = 0; six < 2; six++)
		for (size_t i = 0; i < LEN(table); i++) {
			char what[60];
			snprintf(what, sizeof what, "%s protocol %d", six ? "IPv6" : "IPv4", table[i]);
			if (table[i] == 256 || table[i] == 262)
				continue;
			int s = (int)err(what, socket(six ? AF_INET6 : AF_INET, SOCK_RAW, table[i]));
			close(s);
		}
}

static void turn(int protocol)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)}, from = {0};
	int s = (int)must(socket(AF_INET, SOCK_RAW, protocol), "socket"), t = (int)must(socket(AF_INET, SOCK_RAW | SOCK_NONBLOCK, protocol), "socket");
	int other = (int)must(socket(AF_INET, SOCK_RAW | SOCK_NONBLOCK, protocol - 1), "socket");
	socklen_t n = sizeof a;
	err("bind", bind(s, (void *)&a, n));
	num("send", sendto(t, "payload", 7, 0, (void *)&a, sizeof a));
	char b[100];
	struct iphdr *ip = (void *)b;
	n = sizeof from;
	num("recv", recvfrom(s, b, sizeof b, 0, (void *)&from, &n));
	say("version %d, length %d, protocol %d, ttl %d, %.7s, from %s %d", ip->version, ntohs(ip->tot_len), ip->protocol, ip->ttl, b + 20, inet_ntoa(from.sin_addr), from.sin_port);
	num("the sender's own", recv(t, b, sizeof b, 0));
	num("another protocol", recv(other, b, sizeof b, 0));
	err("connect", connect(t, (void *)&a, sizeof a));
	num("write", write(t, "more", 4));
	num("recv", recv(s, b, sizeof b, 0));
	int one = 1;
	err("header included", setsockopt(t, IPPROTO_IP, IP_HDRINCL, &one, sizeof one));
	memset(b, 0, sizeof b);
	*ip = (struct iphdr){.version = 4, .ihl = 5, .ttl = 9, .protocol = (unsigned char)protocol, .daddr = a.sin_addr.s_addr};
	strcpy(b + 20, "own");
	num("write", write(t, b, 23));
	num("recv", recv(s, b, sizeof b, 0));
	say("ttl %d, length %d, %.3s", ip->ttl, ntohs(ip->tot_len), b + 20);
	close(s), close(t);
	num("nobody listens", sendto(other, "x", 1, 0, (void *)&a, sizeof a));
}

TEST(experiment, "protocol 253") { turn(253); }
TEST(tunnel, "protocol 47") { turn(47); }

TEST(six, "protocol 253 of IPv6")
{
	struct sockaddr_in6 a = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT}, from = {0};
	int s = (int)must(socket(AF_INET6, SOCK_RAW, 253), "socket");
	num("send", sendto(s, "payload", 7, 0, (void *)&a, sizeof a));
	char b[100];
	socklen_t n = sizeof from;
	num("recv", recvfrom(s, b, sizeof b, 0, (void *)&from, &n));
	say("%.7s, length %d, port %d, itself %d", b, n, from.sin6_port, IN6_IS_ADDR_LOOPBACK(&from.sin6_addr));
}

TEST(unheard, "a protocol that nobody hears")
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int out = (int)must(socket(AF_INET, SOCK_RAW, IPPROTO_RAW), "socket"), icmp = (int)must(socket(AF_INET, SOCK_RAW, IPPROTO_ICMP), "socket");
	struct {
		struct iphdr ip;
		char text[4];
	} p = {.ip = {.version = 4, .ihl = 5, .ttl = 9, .protocol = 252, .daddr = a.sin_addr.s_addr}, "abc"};
	num("send", sendto(out, &p, sizeof p, 0, (void *)&a, sizeof a));
	struct timeval t = {1, 0};
	setsockopt(icmp, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t);
	unsigned char b[200];
	long n;
	do // other programs have complaints of their own
		n = recv(icmp, b, sizeof b, 0);
	while (n > 0 && (n <= 28 + 9 || b[28 + 9] != 252));
	say("%d type %d code %d about %d", n > 28, b[20], b[21], b[28 + 9]);
}
