// Program packetrings tests what packet sockets share with programs and with each other on
// lo: rings of version 3, rings to send, groups (PACKET_FANOUT), and SIOCGSTAMP.
#include "gt.h"

#include <arpa/inet.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>

enum { OWN = 0x88b5 }; // a type that nothing else uses

#define LEN(a) (sizeof(a) / sizeof *(a))

static int lo(void) { return (int)if_nametoindex("lo"); }

static struct sockaddr_ll to(int protocol) { return (struct sockaddr_ll){.sll_family = AF_PACKET, .sll_protocol = htons((uint16_t)protocol), .sll_ifindex = lo(), .sll_halen = 6}; }

static int packet(int type, int protocol)
{
	int s = (int)must(socket(AF_PACKET, type | SOCK_NONBLOCK, 0), "socket");
	struct sockaddr_ll a = to(protocol);
	must(bind(s, (void *)&a, sizeof a), "bind");
	return s;
}

static long send_frame(int s, const char *text)
{
	char b[1600] = {0};
	b[12] = (char)(OWN >> 8), b[13] = (char)OWN;
	strcpy(b + 14, text);
	struct sockaddr_ll a = to(OWN);
	return sendto(s, b, 14 + strlen(text), 0, (void *)&a, sizeof a);
}

static void version(int s, int v) { must(setsockopt(s, SOL_PACKET, PACKET_VERSION, &v, sizeof v), "version"); }

static long ring(int s, int name, unsigned block, unsigned blocks, unsigned frame, unsigned tov, unsigned priv, unsigned features)
{
	struct tpacket_req3 r = {block, blocks, frame, frame ? block / frame * blocks : 0, tov, priv, features};
	return setsockopt(s, SOL_PACKET, name, &r, sizeof r);
}

static int readable(int s, int ms)
{
	struct pollfd p = {.fd = s, .events = POLLIN};
	poll(&p, 1, ms);
	return p.revents;
}

static void stats(const char *what, int s)
{
	struct tpacket_stats_v3 t = {0};
	socklen_t n = sizeof t;
	err(what, getsockopt(s, SOL_PACKET, PACKET_STATISTICS, &t, &n));
	say("%s: length %u packets %u drops %u freezes %u", what, n, t.tp_packets, t.tp_drops, n > 8 ? t.tp_freeze_q_cnt : 0);
}

static void show_block(const char *what, char *at)
{
	struct tpacket_block_desc *d = (void *)at;
	say("%s: version %u private %u status %#x packets %u first %u length %u number %llu", what, d->version, d->offset_to_priv, d->hdr.bh1.block_status, d->hdr.bh1.num_pkts, d->hdr.bh1.offset_to_first_pkt, d->hdr.bh1.blk_len, (unsigned long long)d->hdr.bh1.seq_num);
	unsigned off = d->hdr.bh1.offset_to_first_pkt;
	for (unsigned i = 0; i < d->hdr.bh1.num_pkts && d->hdr.bh1.block_status; i++) {
		struct tpacket3_hdr *h = (void *)(at + off);
		struct sockaddr_ll *a = (void *)((char *)h + TPACKET_ALIGN(sizeof *h));
		say("  next %u snap %u len %u status %#x mac %u net %u vlan %u type %04x to lo %d: %.12s", h->tp_next_offset, h->tp_snaplen, h->tp_len, h->tp_status & ~TP_STATUS_CSUMNOTREADY, h->tp_mac, h->tp_net, h->hv1.tp_vlan_tci, ntohs(a->sll_protocol), a->sll_ifindex == lo(), (char *)h + h->tp_mac + (h->tp_mac == h->tp_net ? 0 : 14));
		off += h->tp_next_offset;
	}
	say("%s: ordered %d", what, d->hdr.bh1.ts_last_pkt.ts_sec > d->hdr.bh1.ts_first_pkt.ts_sec || (d->hdr.bh1.ts_last_pkt.ts_sec == d->hdr.bh1.ts_first_pkt.ts_sec && d->hdr.bh1.ts_last_pkt.ts_nsec >= d->hdr.bh1.ts_first_pkt.ts_nsec));
}

TEST(refused, "rings that are refused")
{
	static const struct {
		unsigned block, blocks, frame, tov, priv, features;
	} table[] = {{4096, 2, 2048, 0, 0, 0}, {4096, 2, 4096, 100, 0, 0}, {4096, 2, 2048, 0, 4000, 0}, {4096, 2, 2048, 0, 3980, 0}, {4096, 2, 2048, 0, 3900, 0}, {4096, 2, 2048, 0, ~0U, 0}, {4096, 2, 2048, 0, 1U << 31, 0}, {4096, 2, 64, 0, 0, 0}, {4096, 2, 80, 0, 0, 0}, {4096, 2, 72, 0, 0, 0}, {5000, 2, 2048, 0, 0, 0}, {0, 2, 2048, 0, 0, 0}, {4096, 0, 0, 0, 0, 0}, {4096, 2, 2048, 0, 0, 1}};
	static const int names[] = {PACKET_RX_RING, PACKET_TX_RING};
	for (int v = TPACKET_V1; v <= TPACKET_V3; v++)
		for (size_t k = 0; k < LEN(names); k++)
			for (size_t i = 0; i < LEN(table); i++) {
				int s = packet(SOCK_RAW, OWN);
				char what[80];
				version(s, v);
				snprintf(what, sizeof what, "version %d, option %d, %zu", v, names[k], i);
				err(what, ring(s, names[k], table[i].block, table[i].blocks, table[i].frame, table[i].tov, table[i].priv, table[i].features));
				close(s);
			}
	int s = packet(SOCK_RAW, OWN), v = 3;
	err("version 4", setsockopt(s, SOL_PACKET, PACKET_VERSION, &v, sizeof v));
	version(s, TPACKET_V3);
	char short_one[16] = {0};
	err("a short request", setsockopt(s, SOL_PACKET, PACKET_RX_RING, short_one, sizeof short_one));
	for (v = 0; v < 4; v++) {
		int x = v;
		socklen_t n = sizeof x;
		err("length of a header", getsockopt(s, SOL_PACKET, PACKET_HDRLEN, &x, &n));
		num("is", x);
	}
	err("nothing to map", mmap(NULL, 4096, PROT_READ, MAP_SHARED, s, 0) == MAP_FAILED ? -1 : 0);
	err("a ring", ring(s, PACKET_RX_RING, 4096, 2, 2048, 0, 0, 0));
	err("another version", setsockopt(s, SOL_PACKET, PACKET_VERSION, &(int){0}, sizeof v));
	err("a second one", ring(s, PACKET_RX_RING, 4096, 2, 2048, 0, 0, 0));
	err("one to send", ring(s, PACKET_TX_RING, 4096, 2, 2048, 0, 0, 0));
	char *m = mmap(NULL, 16384, PROT_READ | PROT_WRITE, MAP_SHARED, s, 0);
	err("map both", m == MAP_FAILED ? -1 : 0);
	err("end one that is mapped", ring(s, PACKET_RX_RING, 0, 0, 0, 0, 0, 0));
	munmap(m, 16384);
	err("end it", ring(s, PACKET_RX_RING, 0, 0, 0, 0, 0, 0));
	err("end the other", ring(s, PACKET_TX_RING, 0, 0, 0, 0, 0, 0));
}

TEST(blocks, "blocks of version 3")
{
	static const struct {
		int type;
		unsigned priv;
	} table[] = {{SOCK_RAW, 0}, {SOCK_RAW, 20}, {SOCK_DGRAM, 0}};
	for (size_t t = 0; t < LEN(table); t++) {
		int s = packet(table[t].type, OWN), from = packet(SOCK_RAW, 0);
		version(s, TPACKET_V3);
		must(ring(s, PACKET_RX_RING, 4096, 2, 2048, 100000, table[t].priv, 0), "ring");
		char *m = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, s, 0);
		if (m == MAP_FAILED)
			fatal("mmap");
		show_block("at first", m);
		num("readable", readable(s, 0));
		char text[1300];
		for (int i = 0; i < 5; i++) {
			memset(text, 'a' + i, sizeof text), text[i == 1 ? 1 : 1200] = 0;
			must(send_frame(from, text), "send");
		}
		num("readable", readable(s, 1000));
		show_block("the first", m);
		show_block("the second", m + 4096);
		stats("so far", s);
		for (int i = 5; i < 9; i++) {
			memset(text, 'a' + i, sizeof text), text[1200] = 0;
			must(send_frame(from, text), "send");
		}
		show_block("the second, full", m + 4096);
		stats("two lost", s);
		((struct tpacket_block_desc *)m)->hdr.bh1.block_status = 0;
		must(send_frame(from, "one more"), "send");
		((struct tpacket_block_desc *)(m + 4096))->hdr.bh1.block_status = 0;
		num("readable", readable(s, 0));
		say("it is the kernel's: %u", ((struct tpacket_block_desc *)m)->hdr.bh1.block_status);
		num("recv", recv(s, text, sizeof text, 0));
		munmap(m, 8192);
		close(s), close(from);
	}
}

TEST(timeout, "a block comes after a time")
{
	int s = packet(SOCK_RAW, OWN), from = packet(SOCK_RAW, 0);
	version(s, TPACKET_V3);
	must(ring(s, PACKET_RX_RING, 8192, 3, 2048, 50, 0, 0), "ring");
	char *m = mmap(NULL, 3 * 8192, PROT_READ | PROT_WRITE, MAP_SHARED, s, 0);
	for (int i = 0; i < 7; i++) {
		char text[30];
		snprintf(text, sizeof text, "number %d", i);
		must(send_frame(from, text), "send");
		num("readable", readable(s, 5000));
		struct tpacket_block_desc *d = (void *)(m + i % 3 * 8192);
		show_block("block", (void *)d);
		d->hdr.bh1.block_status = 0;
	}
	stats("all", s);
}

TEST(sending, "rings to send")
{
	static const int types[] = {SOCK_RAW, SOCK_DGRAM};
	for (int v = TPACKET_V1; v <= TPACKET_V3; v++)
		for (size_t t = 0; t < LEN(types); t++) {
			int s = packet(types[t], OWN), in = packet(SOCK_RAW, OWN);
			version(s, v);
			must(ring(s, PACKET_TX_RING, 4096, 2, 2048, 0, 0, 0), "ring");
			char *m = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, s, 0), what[60], b[100];
			if (m == MAP_FAILED)
				fatal("mmap");
			snprintf(what, sizeof what, "version %d, type %d", v, types[t]);
			num(what, send(s, NULL, 0, 0));
			for (int round = 0; round < 3; round++) {
				for (int i = 0; i < 4; i++) {
					char *f = m + 2048 * i;
					size_t head = v == TPACKET_V3 ? sizeof(struct tpacket3_hdr) : TPACKET_ALIGN(sizeof(struct tpacket_hdr));
					char *data = f + head;
					size_t n = 0;
					if (types[t] == SOCK_RAW)
						memset(data, 0, 12), data[12] = (char)(OWN >> 8), data[13] = (char)OWN, n = 14;
					n += (size_t)sprintf(data + n, "%d in round %d", i, round);
					if (round == 1 && i == 2)
						n = 60000; // more than a frame has
					if (v == TPACKET_V1)
						((struct tpacket_hdr *)f)->tp_len = (unsigned)n, ((struct tpacket_hdr *)f)->tp_status = TP_STATUS_SEND_REQUEST;
					else if (v == TPACKET_V2)
						((struct tpacket2_hdr *)f)->tp_len = (unsigned)n, ((struct tpacket2_hdr *)f)->tp_status = TP_STATUS_SEND_REQUEST;
					else
						((struct tpacket3_hdr *)f)->tp_len = (unsigned)n, ((struct tpacket3_hdr *)f)->tp_next_offset = 0, ((struct tpacket3_hdr *)f)->tp_status = TP_STATUS_SEND_REQUEST;
				}
				struct sockaddr_ll a = to(OWN);
				num(what, types[t] == SOCK_RAW ? send(s, NULL, 0, 0) : sendto(s, NULL, 0, 0, (void *)&a, sizeof a));
				for (ssize_t n; (n = recv(in, b, sizeof b - 1, 0)) > 0;)
					b[n] = 0, say("%s: %zd %s", what, n, b + 14);
				for (int i = 0; i < 4; i++) {
					char *f = m + 2048 * i;
					unsigned status = v == TPACKET_V1 ? (unsigned)((struct tpacket_hdr *)f)->tp_status : v == TPACKET_V2 ? ((struct tpacket2_hdr *)f)->tp_status : ((struct tpacket3_hdr *)f)->tp_status;
					say("%s: frame %d is %u", what, i, status & 7);
				}
			}
			munmap(m, 8192);
			close(s), close(in);
		}
}

static long fanout(int s, unsigned id, unsigned type)
{
	unsigned v = id | type << 16;
	return setsockopt(s, SOL_PACKET, PACKET_FANOUT, &v, sizeof v);
}

static unsigned joined(int s)
{
	unsigned v = 0;
	socklen_t n = sizeof v;
	getsockopt(s, SOL_PACKET, PACKET_FANOUT, &v, &n);
	return v;
}

TEST(joining, "groups")
{
	for (unsigned type = 0; type < 10; type++) {
		int s = packet(SOCK_RAW, OWN);
		char what[40];
		snprintf(what, sizeof what, "type %u", type);
		if (type != PACKET_FANOUT_EBPF)
			err(what, fanout(s, 100 + type, type)), say("%s: %#x", what, joined(s));
		close(s);
	}
	int a = packet(SOCK_RAW, OWN), b = packet(SOCK_RAW, OWN), c = packet(SOCK_RAW, OWN + 1), d = (int)must(socket(AF_PACKET, SOCK_RAW, 0), "socket"), e = packet(SOCK_DGRAM, OWN);
	err("a", fanout(a, 7, PACKET_FANOUT_LB));
	err("a again", fanout(a, 7, PACKET_FANOUT_LB));
	err("b, another type", fanout(b, 7, PACKET_FANOUT_HASH));
	err("b, other flags", fanout(b, 7, PACKET_FANOUT_LB | PACKET_FANOUT_FLAG_ROLLOVER));
	err("b", fanout(b, 7, PACKET_FANOUT_LB));
	err("c, another protocol", fanout(c, 7, PACKET_FANOUT_LB));
	err("d, not bound", fanout(d, 7, PACKET_FANOUT_LB));
	err("e, another kind", fanout(e, 7, PACKET_FANOUT_LB));
	err("c, rollover twice", fanout(c, 8, PACKET_FANOUT_ROLLOVER | PACKET_FANOUT_FLAG_ROLLOVER));
	struct sockaddr_ll to_all = to(OWN);
	err("bind in a group", bind(a, (void *)&to_all, sizeof to_all));
	err("any number, not 0", fanout(c, 9, PACKET_FANOUT_HASH | PACKET_FANOUT_FLAG_UNIQUEID));
	err("any number", fanout(c, 0, PACKET_FANOUT_HASH | PACKET_FANOUT_FLAG_UNIQUEID));
	say("flags then %#x", joined(c) >> 24);
	struct sock_fprog none = {0};
	err("a program for no group", setsockopt(d, SOL_PACKET, PACKET_FANOUT_DATA, &none, sizeof none));
	err("a program for another type", setsockopt(a, SOL_PACKET, PACKET_FANOUT_DATA, &none, sizeof none));
	close(a), close(b), close(e);
	int f = packet(SOCK_RAW, OWN);
	err("a new group of that number", fanout(f, 7, PACKET_FANOUT_HASH));
	char room[3] = {0};
	err("short", setsockopt(d, SOL_PACKET, PACKET_FANOUT, room, 3));
	struct {
		unsigned id, most;
	} x = {50 | PACKET_FANOUT_LB << 16, 1};
	int g = packet(SOCK_RAW, OWN), h = packet(SOCK_RAW, OWN);
	err("of one", setsockopt(g, SOL_PACKET, PACKET_FANOUT, &x, sizeof x));
	err("a second", setsockopt(h, SOL_PACKET, PACKET_FANOUT, &x, sizeof x));
	x.most = 2;
	err("with another limit", setsockopt(h, SOL_PACKET, PACKET_FANOUT, &x, sizeof x));
}

static int count(int s)
{
	char b[2000];
	int n = 0;
	while (recv(s, b, sizeof b, 0) > 0)
		n++;
	return n;
}

TEST(sharing, "packets of a group")
{
	static const unsigned how[] = {PACKET_FANOUT_LB, PACKET_FANOUT_HASH, PACKET_FANOUT_RND, PACKET_FANOUT_QM, PACKET_FANOUT_CBPF, PACKET_FANOUT_ROLLOVER};
	for (size_t k = 0; k < LEN(how); k++) {
		int s[3], from = packet(SOCK_RAW, 0), small = 1;
		for (int i = 0; i < 3; i++) {
			s[i] = packet(SOCK_RAW, OWN);
			setsockopt(s[i], SOL_SOCKET, SO_RCVBUF, how[k] == PACKET_FANOUT_ROLLOVER ? &small : &(int){100000}, sizeof(int));
			must(fanout(s[i], 20, how[k]), "fanout");
		}
		if (how[k] == PACKET_FANOUT_CBPF) {
			struct sock_filter code[] = {{BPF_LD | BPF_B | BPF_ABS, 0, 0, 0}, {BPF_RET | BPF_A, 0, 0, 0}};
			struct sock_fprog p = {LEN(code), code};
			err("program", setsockopt(s[0], SOL_PACKET, PACKET_FANOUT_DATA, &p, sizeof p));
		}
		static const char *const texts[] = {"0 mod 3 is 48", "1", "2", "0", "1", "1"};
		for (size_t i = 0; i < LEN(texts); i++)
			must(send_frame(from, texts[i]), "send");
		int n[3], all = 0, most = 0;
		for (int i = 0; i < 3; i++)
			n[i] = count(s[i]), all += n[i], most = n[i] > most ? n[i] : most;
		if (how[k] == PACKET_FANOUT_LB || how[k] == PACKET_FANOUT_CBPF)
			say("how %u: %d %d %d", how[k], n[0], n[1], n[2]);
		else if (how[k] == PACKET_FANOUT_ROLLOVER)
			say("how %u: more than one has some: %d", how[k], most < all);
		else
			say("how %u: all %d, to one %d", how[k], all, how[k] == PACKET_FANOUT_RND ? 0 : most);
		num("own packets", send_frame(s[0], "mine"));
		say("none of the group hears of them: %d", count(s[0]) + count(s[1]) + count(s[2]));
		close(s[0]);
		send_frame(from, "left"), send_frame(from, "left");
		say("the others get them: %d", count(s[1]) + count(s[2]));
		close(s[1]), close(s[2]), close(from);
	}
}

// Both directions of a flow go to one socket of a group by hash.
TEST(flows, "flows of UDP")
{
	int s[4], u[8], mixed = 0, used = 0;
	for (int i = 0; i < 4; i++)
		s[i] = packet(SOCK_DGRAM, ETH_P_IP), must(fanout(s[i], 30, PACKET_FANOUT_HASH), "fanout");
	struct sockaddr_in a[8];
	for (int i = 0; i < 8; i++) {
		u[i] = (int)must(socket(AF_INET, SOCK_DGRAM, 0), "socket");
		a[i] = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
		socklen_t n = sizeof a[i];
		must(bind(u[i], (void *)&a[i], n), "bind");
		getsockname(u[i], (void *)&a[i], &n);
	}
	for (int i = 0; i < 8; i += 2) {
		for (int k = 0; k < 6; k++)
			sendto(u[i + k % 2], "x", 1, 0, (void *)&a[i + 1 - k % 2], sizeof a[0]);
		int got = 0;
		for (int j = 0; j < 4; j++) {
			int n = 0;
			char b[200];
			for (ssize_t z; (z = recv(s[j], b, sizeof b, 0)) > 0;) // of this flow only
				n += z >= 28 && b[9] == IPPROTO_UDP && (!memcmp(b + 20, &a[i].sin_port, 2) || !memcmp(b + 22, &a[i].sin_port, 2));
			mixed += n && n != 6, got += n;
		}
		used += got;
	}
	say("packets %d, flows that are divided %d", used, mixed);
}

TEST(stamps, "SIOCGSTAMP")
{
	int s = packet(SOCK_RAW, OWN);
	struct timeval v, now;
	struct timespec x;
	char b[100];
	err("before", ioctl(s, SIOCGSTAMP, &v));
	send_frame(packet(SOCK_RAW, 0), "text");
	num("recv", recv(s, b, sizeof b, 0));
	err("after", ioctl(s, SIOCGSTAMP, &v));
	err("in ns", ioctl(s, SIOCGSTAMPNS, &x));
	gettimeofday(&now, NULL);
	say("now: %d %d", now.tv_sec - v.tv_sec < 10, x.tv_sec - v.tv_sec < 10);
}
