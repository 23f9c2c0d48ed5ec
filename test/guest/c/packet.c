// Program packet tests AF_PACKET on lo: frames in and out, addresses, filters, options,
// rings, and packets of UDP and TCP as a packet socket sees them.
#include "gt.h"

#include <arpa/inet.h>
#include <linux/filter.h>
#include <linux/sockios.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/tcp.h>
#include <netinet/udp.h>
#include <sys/socket.h>

enum { OWN = 0x88b5, OTHER = 0x88b6 }; // types that nothing else uses

#define LEN(a) (sizeof(a) / sizeof *(a))

static int lo(void) { return (int)if_nametoindex("lo"); }

static int packet(int type, int protocol) { return (int)must(socket(AF_PACKET, type | SOCK_NONBLOCK, htons((uint16_t)protocol)), "socket"); }

static struct sockaddr_ll to(int protocol)
{
	return (struct sockaddr_ll){.sll_family = AF_PACKET, .sll_protocol = htons((uint16_t)protocol), .sll_ifindex = lo(), .sll_halen = 6};
}

static long bind_to(int s, int protocol, int index)
{
	struct sockaddr_ll a = to(protocol);
	a.sll_ifindex = index;
	return bind(s, (void *)&a, sizeof a);
}

static void address(const char *what, struct sockaddr_ll *a, socklen_t n)
{
	say("%s: length %u family %d protocol %04x index %s hatype %d type %d halen %d", what, n, a->sll_family, ntohs(a->sll_protocol),
	    a->sll_ifindex == 0 ? "0" : a->sll_ifindex == lo() ? "lo" : "other", a->sll_hatype, a->sll_pkttype, a->sll_halen);
}

static void own(const char *what, int s)
{
	struct sockaddr_ll a = {0};
	socklen_t n = sizeof a;
	if (getsockname(s, (void *)&a, &n) < 0)
		say("%s: %s", what, name_of(errno));
	else
		address(what, &a, n);
}

static void frame(char *b, int protocol, const char *text)
{
	memset(b, 0, 14);
	b[12] = (char)(protocol >> 8), b[13] = (char)protocol;
	strcpy(b + 14, text);
}

static long send_frame(int s, int protocol, const char *text)
{
	char b[200];
	frame(b, protocol, text);
	struct sockaddr_ll a = to(protocol);
	return sendto(s, b, 14 + strlen(text), 0, (void *)&a, sizeof a);
}

// take receives all that waits and prints it.
static void take(const char *what, int s, size_t room, int flags)
{
	for (int i = 0; i < 4; i++) {
		char b[300] = {0}, control[100];
		struct sockaddr_ll a = {0};
		struct iovec v = {b, room};
		struct msghdr m = {.msg_name = &a, .msg_namelen = sizeof a, .msg_iov = &v, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
		struct pollfd p = {.fd = s, .events = POLLIN};
		poll(&p, 1, i == 0 ? 2000 : 0);
		ssize_t n = recvmsg(s, &m, flags);
		if (n < 0) {
			say("%s: %s", what, name_of(errno));
			return;
		}
		address(what, &a, m.msg_namelen);
		ssize_t have = n < (ssize_t)room ? n : (ssize_t)room;
		char *text = have > 14 && b[12] == (char)0x88 ? b + 14 : b;
		say("%s: %zd bytes, flags %#x, control %d, data %.40s", what, n, m.msg_flags, m.msg_controllen > 0, text);
		for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c)) {
			struct tpacket_auxdata x;
			if (c->cmsg_level != SOL_PACKET || c->cmsg_type != PACKET_AUXDATA) {
				say("%s: control %d/%d", what, c->cmsg_level, c->cmsg_type);
				continue;
			}
			memcpy(&x, CMSG_DATA(c), sizeof x);
			say("%s: aux length %zu: user %d len %u snap %u mac %u net %u vlan %u %u", what, (size_t)c->cmsg_len, x.tp_status & 1, x.tp_len, x.tp_snaplen, x.tp_mac, x.tp_net, x.tp_vlan_tci, x.tp_vlan_tpid);
		}
		if (flags & MSG_PEEK)
			return;
	}
}

TEST(making, "which packet sockets there are")
{
	static const int types[] = {SOCK_STREAM, SOCK_DGRAM, SOCK_RAW, SOCK_RDM, SOCK_SEQPACKET, SOCK_DCCP, 11, -1};
	for (size_t i = 0; i < LEN(types); i++) {
		char what[40];
		snprintf(what, sizeof what, "type %d", types[i]);
		err(what, socket(AF_PACKET, types[i], htons(OWN)));
	}
	int pair[2];
	err("a pair", socketpair(AF_PACKET, SOCK_RAW, 0, pair));
	err("protocol of 32 bits", socket(AF_PACKET, SOCK_RAW, 0x12345678));
	int s = packet(SOCK_RAW, OWN), v, n;
	static const int asked[] = {SO_TYPE, SO_DOMAIN, SO_PROTOCOL, SO_ERROR, SO_ACCEPTCONN};
	for (size_t i = 0; i < LEN(asked); i++) {
		n = sizeof v, v = -1;
		getsockopt(s, SOL_SOCKET, asked[i], &v, (socklen_t *)&n);
		say("option %d: %d", asked[i], v);
	}
	struct stat st;
	fstat(s, &st);
	say("a socket: %d", S_ISSOCK(st.st_mode));
	status("another user", wait_for(FORK(if (setuid(1000)) _exit(9); _exit(socket(AF_PACKET, SOCK_RAW, 0) < 0 ? errno : 0))));
	status("another user, bad type", wait_for(FORK(if (setuid(1000)) _exit(9); _exit(socket(AF_PACKET, SOCK_STREAM, 0) < 0 ? errno : 0))));
}

TEST(names, "bind and getsockname")
{
	int s = packet(SOCK_RAW, 0);
	own("new", s);
	err("bind to lo", bind_to(s, 0, lo()));
	own("bound", s);
	err("with a protocol", bind_to(s, OWN, lo()));
	own("then", s);
	err("without, again", bind_to(s, 0, lo()));
	own("it stays", s);
	err("to all", bind_to(s, OTHER, 0));
	own("all", s);
	err("no such interface", bind_to(s, OWN, 12345));
	err("negative interface", bind_to(s, OWN, -1));
	own("unchanged", s);
	struct sockaddr_ll a = to(OWN);
	for (socklen_t n = 0; n <= 21; n += n < 14 ? 7 : 1) {
		char what[40];
		snprintf(what, sizeof what, "address of %u bytes", n);
		err(what, bind(s, (void *)&a, n));
	}
	a.sll_family = AF_INET;
	err("another family", bind(s, (void *)&a, sizeof a));
	a.sll_family = AF_UNSPEC;
	err("no family", bind(s, (void *)&a, sizeof a));
}

TEST(absent, "calls that packet sockets do not know")
{
	int s = packet(SOCK_RAW, OWN);
	struct sockaddr_ll a = to(OWN);
	socklen_t n = sizeof a;
	err("connect", connect(s, (void *)&a, n));
	err("listen", listen(s, 1));
	err("accept", accept(s, NULL, NULL));
	err("shutdown", shutdown(s, SHUT_RDWR));
	err("shutdown, bad how", shutdown(s, 7));
	err("getpeername", getpeername(s, (void *)&a, &n));
	err("lseek", lseek(s, 0, SEEK_SET));
	err("mmap", mmap(NULL, 4096, PROT_READ, MAP_SHARED, s, 0) == MAP_FAILED ? -1 : 0);
	char b[8];
	err("recv of urgent bytes", recv(s, b, 8, MSG_OOB));
	err("recv, all", recv(s, b, 8, MSG_WAITALL));
	err("recv of errors", recv(s, b, 8, MSG_ERRQUEUE));
	err("recv of nothing", recv(s, b, 8, 0));
}

TEST(frames, "frames of one socket in others")
{
	int raw = packet(SOCK_RAW, OWN), cooked = packet(SOCK_DGRAM, OWN), other = packet(SOCK_RAW, OTHER), out = packet(SOCK_RAW, 0);
	err("bind", bind_to(raw, OWN, lo()));
	num("send", send_frame(out, OWN, "hello"));
	take("raw", raw, 100, 0);
	take("cooked", cooked, 100, 0);
	num("cooked sends", sendto(cooked, "abc", 3, 0, (void *)&(struct sockaddr_ll){.sll_family = AF_PACKET, .sll_protocol = htons(OWN), .sll_ifindex = lo(), .sll_halen = 6}, sizeof(struct sockaddr_ll)));
	take("raw", raw, 100, 0);
	take("cooked itself", cooked, 100, 0);
	num("the bound one writes", write(raw, "\0\0\0\0\0\0\0\0\0\0\0\0\x88\xb5 written", 22));
	take("raw itself", raw, 100, 0);
	take("cooked", cooked, 100, 0);
	send_frame(out, OWN, "0123456789");
	take("peek", raw, 18, MSG_PEEK);
	take("peek, whole length", raw, 18, MSG_PEEK | MSG_TRUNC);
	take("cut", raw, 18, 0);
	send_frame(out, OWN, "0123456789");
	take("whole length", raw, 18, MSG_TRUNC);
	send_frame(out, OTHER, "x");
	take("not for it", raw, 100, MSG_DONTWAIT);
	take("for the other", other, 100, 0);
}

TEST(stations, "to whom a frame goes")
{
	static const struct {
		const char *name;
		unsigned char mac[6];
	} table[] = {{"all", {255, 255, 255, 255, 255, 255}}, {"a group", {1, 0, 0x5e, 1, 2, 3}}, {"another", {2, 1, 1, 1, 1, 1}}, {"lo", {0}}};
	int raw = packet(SOCK_RAW, OWN), out = packet(SOCK_DGRAM, 0);
	for (size_t i = 0; i < LEN(table); i++) {
		struct sockaddr_ll a = to(OWN);
		memcpy(a.sll_addr, table[i].mac, 6);
		num(table[i].name, sendto(out, "to", 2, 0, (void *)&a, sizeof a));
		take(table[i].name, raw, 100, 0);
	}
}

TEST(sending, "what cannot be sent")
{
	static char big[70000];
	int raw = packet(SOCK_RAW, 0), cooked = packet(SOCK_DGRAM, 0);
	struct sockaddr_ll a = to(OWN), b = a;
	err("nobody", write(raw, big, 60));
	b.sll_ifindex = 12345;
	err("no such interface", sendto(raw, big, 60, 0, (void *)&b, sizeof b));
	err("short address", sendto(raw, big, 60, 0, (void *)&a, sizeof a - 1));
	err("tiny address", sendto(raw, big, 60, 0, (void *)&a, 4));
	b = a, b.sll_halen = 9;
	err("long station", sendto(raw, big, 60, 0, (void *)&b, sizeof b));
	b = a, b.sll_family = AF_INET;
	err("another family", sendto(raw, big, 60, 0, (void *)&b, sizeof b));
	static const size_t sizes[] = {0, 1, 13, 14, 60, 65536, 65536 + 14, 65536 + 15, 65536 + 18, 65536 + 19};
	for (size_t i = 0; i < LEN(sizes); i++) {
		char what[60];
		big[12] = (char)0x88, big[13] = (char)0xb5;
		snprintf(what, sizeof what, "raw, %zu bytes", sizes[i]);
		num(what, sendto(raw, big, sizes[i], 0, (void *)&a, sizeof a));
		snprintf(what, sizeof what, "cooked, %zu bytes", sizes[i]);
		num(what, sendto(cooked, big, sizes[i], 0, (void *)&a, sizeof a));
	}
	err("from nowhere", sendto(raw, (void *)1, 60, 0, (void *)&a, sizeof a));
	bind_to(cooked, OWN, lo());
	num("bound to lo, no station", write(cooked, big, 20));
}

// udp_filter lets through UDP to a port, from the link header on or the network header.
static void udp_filter(int s, unsigned port, unsigned net, unsigned keep)
{
	struct sock_filter code[] = {
	    BPF_STMT(BPF_LD | BPF_B | BPF_ABS, net + 9),
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, IPPROTO_UDP, 0, 3),
	    BPF_STMT(BPF_LD | BPF_H | BPF_ABS, net + 22),
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, port, 0, 1),
	    BPF_STMT(BPF_RET | BPF_K, keep),
	    BPF_STMT(BPF_RET | BPF_K, 0),
	};
	struct sock_fprog p = {LEN(code), code};
	err("filter", setsockopt(s, SOL_SOCKET, SO_ATTACH_FILTER, &p, sizeof p));
}

TEST(datagrams, "datagrams of UDP as packet sockets see them")
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t n = sizeof a;
	int u = socket(AF_INET, SOCK_DGRAM, 0), w = socket(AF_INET, SOCK_DGRAM, 0);
	bind(u, (void *)&a, sizeof a);
	getsockname(u, (void *)&a, &n);
	int all = packet(SOCK_RAW, ETH_P_ALL), cooked = packet(SOCK_DGRAM, ETH_P_IP), cut = packet(SOCK_RAW, ETH_P_ALL), quiet = packet(SOCK_DGRAM, ETH_P_ALL);
	udp_filter(all, ntohs(a.sin_port), 14, 0x40000);
	udp_filter(cooked, ntohs(a.sin_port), 0, 0x40000);
	udp_filter(cut, ntohs(a.sin_port), 14, 30);
	udp_filter(quiet, ntohs(a.sin_port), 0, 0x40000);
	int one = 1;
	err("no outgoing", setsockopt(quiet, SOL_PACKET, PACKET_IGNORE_OUTGOING, &one, sizeof one));
	err("aux", setsockopt(cut, SOL_PACKET, PACKET_AUXDATA, &one, sizeof one));
	num("send", sendto(w, "datagram", 8, 0, (void *)&a, sizeof a));
	char b[100];
	num("recv", recv(u, b, sizeof b, 0));
	struct sockaddr_ll from = {0};
	n = sizeof from;
	num("first", recvfrom(all, b, sizeof b, 0, (void *)&from, &n));
	address("first", &from, n);
	num("second", recvfrom(all, b, sizeof b, 0, (void *)&from, &n));
	address("second", &from, n);
	struct iphdr *ip = (void *)(b + 14);
	struct udphdr *h = (void *)(ip + 1);
	say("version %d, header %d, length %d, protocol %d, from %08x to %08x, port %d, length %d, %.8s", ip->version, ip->ihl, ntohs(ip->tot_len), ip->protocol, ntohl(ip->saddr), ntohl(ip->daddr), h->dest == a.sin_port, ntohs(h->len), (char *)(h + 1));
	err("no third", recv(all, b, sizeof b, 0));
	n = sizeof from;
	num("cooked", recvfrom(cooked, b, sizeof b, 0, (void *)&from, &n));
	address("cooked", &from, n);
	err("only one", recv(cooked, b, sizeof b, 0));
	take("cut", cut, 100, 0);
	num("quiet", recv(quiet, b, sizeof b, 0));
	err("only one", recv(quiet, b, sizeof b, 0));
	struct tpacket_stats st = {9, 9};
	n = sizeof st;
	err("statistics", getsockopt(all, SOL_PACKET, PACKET_STATISTICS, &st, &n));
	say("packets %u drops %u length %u", st.tp_packets, st.tp_drops, n);
	getsockopt(all, SOL_PACKET, PACKET_STATISTICS, &st, &n);
	say("then packets %u drops %u", st.tp_packets, st.tp_drops);
}

TEST(connection, "a connection of TCP as a packet socket sees it")
{
	int s = packet(SOCK_DGRAM, ETH_P_IP);
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t n = sizeof a;
	int l = socket(AF_INET, SOCK_STREAM, 0), c = socket(AF_INET, SOCK_STREAM, 0);
	bind(l, (void *)&a, sizeof a);
	listen(l, 1);
	getsockname(l, (void *)&a, &n);
	struct sock_filter code[] = {
	    BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 9),
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, IPPROTO_TCP, 0, 5),
	    BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 20),
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ntohs(a.sin_port), 2, 0),
	    BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 22),
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ntohs(a.sin_port), 0, 1),
	    BPF_STMT(BPF_RET | BPF_K, 0xffff),
	    BPF_STMT(BPF_RET | BPF_K, 0),
	};
	struct sock_fprog p = {LEN(code), code};
	err("filter", setsockopt(s, SOL_SOCKET, SO_ATTACH_FILTER, &p, sizeof p));
	err("connect", connect(c, (void *)&a, sizeof a));
	int d = accept(l, NULL, NULL);
	write(c, "turn", 4);
	char b[200];
	num("read", read(d, b, sizeof b));
	int syn = 0, data = 0, ack = 0;
	for (ssize_t k; (k = recv(s, b, sizeof b, 0)) > 0;) {
		struct iphdr *ip = (void *)b;
		struct tcphdr *t = (void *)(b + ip->ihl * 4);
		syn += t->syn, ack += t->ack;
		data += ntohs(ip->tot_len) == ip->ihl * 4 + t->doff * 4 + 4;
	}
	say("syn %d, some acknowledge %d, data %d", syn, ack > 1, data);
}

TEST(options, "options of packet sockets")
{
	static const struct {
		const char *name;
		int option, value, size;
	} table[] = {
	    {"auxdata", PACKET_AUXDATA, 7, 4}, {"auxdata short", PACKET_AUXDATA, 1, 3}, {"auxdata off", PACKET_AUXDATA, 0, 4},
	    {"origdev", PACKET_ORIGDEV, 1, 4}, {"version 1", PACKET_VERSION, 1, 4}, {"version -1", PACKET_VERSION, -1, 4}, {"version 9", PACKET_VERSION, 9, 4},
	    {"version short", PACKET_VERSION, 1, 2}, {"reserve", PACKET_RESERVE, 64, 4}, {"reserve negative", PACKET_RESERVE, -1, 4},
	    {"loss", PACKET_LOSS, 5, 4}, 
	    {"timestamp", PACKET_TIMESTAMP, 0x40, 4}, {"ignore outgoing 2", PACKET_IGNORE_OUTGOING, 2, 4}, {"ignore outgoing", PACKET_IGNORE_OUTGOING, 1, 4},
	    {"ignore outgoing -1", PACKET_IGNORE_OUTGOING, -1, 4}, {"bypass", PACKET_QDISC_BYPASS, 3, 4}, {"offset", PACKET_TX_HAS_OFF, 3, 4},
	    {"statistics", PACKET_STATISTICS, 1, 4}, {"unknown", 77, 1, 4}, {"zero", 0, 1, 4}, {"negative", -1, 1, 4},
	};
	int s = packet(SOCK_RAW, 0);
	for (size_t i = 0; i < LEN(table); i++) {
		int v = -7;
		socklen_t n = sizeof v;
		err(table[i].name, setsockopt(s, SOL_PACKET, table[i].option, &table[i].value, (socklen_t)table[i].size));
		if (getsockopt(s, SOL_PACKET, table[i].option, &v, &n) < 0)
			say("%s: get %s", table[i].name, name_of(errno));
		else if (table[i].option != PACKET_STATISTICS)
			say("%s: %d, length %u", table[i].name, v, n);
	}
	for (int v = -1; v <= 1; v++) {
		int x = v;
		socklen_t n = sizeof x;
		char what[40];
		snprintf(what, sizeof what, "header of version %d", v);
		num(what, getsockopt(s, SOL_PACKET, PACKET_HDRLEN, &x, &n) < 0 ? -1 : x);
	}
	int v = 1;
	socklen_t n = sizeof v;
	err("level of IP", setsockopt(s, IPPROTO_IP, IP_TTL, &v, n));
	err("get at level of IP", getsockopt(s, IPPROTO_IP, IP_TTL, &v, &n));
	err("unknown level", setsockopt(s, 999, 1, &v, n));
	n = 1;
	err("get a byte", getsockopt(s, SOL_PACKET, PACKET_AUXDATA, &v, &n));
	say("length %u", n);
	n = (socklen_t)-1;
	err("get a negative length", getsockopt(s, SOL_PACKET, PACKET_AUXDATA, &v, &n));
}

TEST(members, "memberships")
{
	int s = packet(SOCK_RAW, 0);
	static const struct {
		const char *name;
		int index, type, alen, size;
	} table[] = {
	    {"promiscuous", 1, PACKET_MR_PROMISC, 0, 16}, {"all groups", 1, PACKET_MR_ALLMULTI, 0, 16}, {"a group", 1, PACKET_MR_MULTICAST, 6, 16},
	    {"a group again", 1, PACKET_MR_MULTICAST, 6, 16}, {"a short group", 1, PACKET_MR_MULTICAST, 5, 16}, {"a long group", 1, PACKET_MR_MULTICAST, 7, 16},
	    {"longer than given", 1, PACKET_MR_MULTICAST, 9, 16}, {"a station", 1, PACKET_MR_UNICAST, 6, 16}, {"unknown type", 1, 9, 6, 16},
	    {"no interface", 0, PACKET_MR_PROMISC, 0, 16}, {"no such interface", 99999, PACKET_MR_PROMISC, 0, 16}, {"short", 1, PACKET_MR_PROMISC, 0, 15},
	    {"long", 1, PACKET_MR_PROMISC, 0, 60},
	};
	for (int add = 1; add >= 0; add--)
		for (size_t i = 0; i < LEN(table); i++) {
			char b[64] = {0}, what[60];
			struct packet_mreq *m = (void *)b;
			m->mr_ifindex = table[i].index == 1 ? lo() : table[i].index, m->mr_type = (unsigned short)table[i].type, m->mr_alen = (unsigned short)table[i].alen;
			m->mr_address[0] = 1;
			snprintf(what, sizeof what, "%s %s", add ? "add" : "drop", table[i].name);
			err(what, setsockopt(s, SOL_PACKET, add ? PACKET_ADD_MEMBERSHIP : PACKET_DROP_MEMBERSHIP, b, (socklen_t)table[i].size));
		}
}

TEST(ringsizes, "which rings can be made")
{
	static const struct {
		const char *name;
		struct tpacket_req r;
		int size;
	} table[] = {
	    {"good", {4096, 2, 2048, 4}, 16}, {"a second", {4096, 2, 2048, 4}, 16}, {"none, with frames", {0, 0, 0, 4}, 16}, {"none", {0, 0, 0, 0}, 16},
	    {"short", {4096, 2, 2048, 4}, 15}, {"block not of pages", {4000, 2, 2000, 4}, 16}, {"block of 0", {0, 2, 2048, 4}, 16},
	    {"frame not aligned", {4096, 2, 1000, 8}, 16}, {"frame too small", {4096, 1, 32, 128}, 16}, {"frame above block", {4096, 2, 8192, 1}, 16},
	    {"other number", {4096, 2, 2048, 5}, 16}, {"other number below", {4096, 2, 2048, 3}, 16}, {"too many", {4096, 0x80000000, 2048, 0}, 16},
	    {"three frames", {8192, 2, 2608, 6}, 16}, {"block of 2^31", {0x80000000, 1, 2048, 0x100000}, 16},
	};
	for (int version = 0; version <= 1; version++) {
		int s = packet(SOCK_RAW, 0);
		err("version", setsockopt(s, SOL_PACKET, PACKET_VERSION, &version, 4));
		for (size_t i = 0; i < LEN(table); i++)
			err(table[i].name, setsockopt(s, SOL_PACKET, PACKET_RX_RING, &table[i].r, (socklen_t)table[i].size));
		err("version with a ring", setsockopt(s, SOL_PACKET, PACKET_VERSION, &version, 4));
		err("reserve with a ring", setsockopt(s, SOL_PACKET, PACKET_RESERVE, &version, 4));
		char *m = mmap(NULL, 16384, PROT_READ | PROT_WRITE, MAP_SHARED, s, 0);
		err("map", m == MAP_FAILED ? -1 : 0);
		struct tpacket_req none = {0};
		err("end, mapped", setsockopt(s, SOL_PACKET, PACKET_RX_RING, &none, sizeof none));
		munmap(m, 16384);
		err("end", setsockopt(s, SOL_PACKET, PACKET_RX_RING, &none, sizeof none));
		err("map none", mmap(NULL, 4096, PROT_READ, MAP_SHARED, s, 0) == MAP_FAILED ? -1 : 0);
		close(s);
	}
}

static void ring_of(int version, int type, int reserve)
{
	int s = packet(type, OWN), out = packet(SOCK_RAW, 0);
	err("version", setsockopt(s, SOL_PACKET, PACKET_VERSION, &version, 4));
	err("reserve", setsockopt(s, SOL_PACKET, PACKET_RESERVE, &reserve, 4));
	struct tpacket_req r = {8192, 1, 4096, 2};
	err("ring", setsockopt(s, SOL_PACKET, PACKET_RX_RING, &r, sizeof r));
	char *m = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, s, 0);
	if (m == MAP_FAILED)
		fatal("mmap");
	struct pollfd p = {.fd = s, .events = POLLIN};
	num("poll before", poll(&p, 1, 0));
	for (int i = 0; i < 3; i++)
		send_frame(out, OWN, i == 0 ? "first" : i == 1 ? "second one" : "lost");
	num("poll", poll(&p, 1, 2000));
	for (int i = 0; i < 2; i++) {
		char *f = m + 4096 * i;
		struct sockaddr_ll *a = (void *)(f + 32);
		char *data;
		if (version == TPACKET_V2) {
			volatile struct tpacket2_hdr *h = (void *)f;
			data = f + h->tp_mac;
			say("frame %d: user %d losing %d len %u snap %u mac %u net %u time %d vlan %d", i, h->tp_status & 1, (h->tp_status & TP_STATUS_LOSING) != 0, h->tp_len, h->tp_snaplen, h->tp_mac, h->tp_net, h->tp_sec > 1000000, h->tp_vlan_tci);
			h->tp_status = TP_STATUS_KERNEL;
		} else {
			volatile struct tpacket_hdr *h = (void *)f;
			data = f + h->tp_mac;
			say("frame %d: user %d len %u snap %u mac %u net %u time %d", i, (int)h->tp_status & 1, h->tp_len, h->tp_snaplen, h->tp_mac, h->tp_net, h->tp_sec > 1000000);
			h->tp_status = TP_STATUS_KERNEL;
		}
		address("from", a, 0);
		say("data %.10s", data + (type == SOCK_RAW ? 14 : 0));
	}
	num("poll, all given back", poll(&p, 1, 0));
	struct tpacket_stats st;
	socklen_t n = sizeof st;
	getsockopt(s, SOL_PACKET, PACKET_STATISTICS, &st, &n);
	say("packets %u drops %u", st.tp_packets, st.tp_drops);
	send_frame(out, OWN, "again");
	num("poll", poll(&p, 1, 2000));
	char b[100];
	err("recv", recv(s, b, sizeof b, 0));
	close(s);
	say("still mapped: %d", m[0] & 1);
}

TEST(ring1, "a ring of version 1") { ring_of(TPACKET_V1, SOCK_RAW, 0); }
TEST(ring2, "a ring of version 2") { ring_of(TPACKET_V2, SOCK_RAW, 0); }
TEST(ring2cooked, "a ring without link headers, with room in front") { ring_of(TPACKET_V2, SOCK_DGRAM, 48); }

TEST(requests, "ioctl of packet sockets")
{
	int s = packet(SOCK_RAW, OWN), out = packet(SOCK_RAW, 0), v = -1;
	err("queued", ioctl(s, SIOCINQ, &v));
	say("%d", v);
	send_frame(out, OWN, "hello");
	struct pollfd p = {.fd = s, .events = POLLIN | POLLOUT};
	poll(&p, 1, 1000);
	say("ready %#x", p.revents);
	err("queued", ioctl(s, SIOCINQ, &v));
	say("%d", v);
	err("to send", ioctl(s, SIOCOUTQ, &v));
	say("%d", v);
	struct ifreq r = {.ifr_name = "lo"};
	err("index", ioctl(s, SIOCGIFINDEX, &r));
	say("lo %d", r.ifr_ifindex == lo());
	err("station", ioctl(s, SIOCGIFHWADDR, &r));
	say("%d", r.ifr_hwaddr.sa_family);
	err("address", ioctl(s, SIOCGIFADDR, &r));
	err("flags", ioctl(s, SIOCGIFFLAGS, &r));
	err("unknown", ioctl(s, 0x89fe, &r));
}

TEST(waiting, "a receive that waits")
{
	int s = (int)must(socket(AF_PACKET, SOCK_RAW, htons(OWN)), "socket");
	pid_t child = FORK(char b[100]; _exit((int)recv(s, b, sizeof b, 0)));
	settle(child);
	send_frame(packet(SOCK_RAW, 0), OWN, "woken");
	status("the child", wait_for(child));
	struct timeval t = {0, 20000};
	setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t);
	char b[100];
	num("what the child had too", recv(s, b, sizeof b, 0));
}
