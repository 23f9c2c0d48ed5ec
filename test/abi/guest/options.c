// The table of socket options, and that of sockets in every state.
#include "files.h"
#include <linux/netlink.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <netinet/udp.h>

const kind socket_kinds[] = {
	{"unix", unix_new}, {"unix-bound", unix_bound}, {"unix-listen", unix_listen}, {"unix-conn", unix_connected}, {"unix-pair", unix_pair},
	{"unix-data", unix_data}, {"unix-eof", unix_closed}, {"unix-stale", unix_stale}, {"unix-shutw", unix_shut_write},
	{"unix-shutr", unix_shut_read}, {"unix-shut", unix_both}, {"unix-peershut", unix_peer_shut}, {"unix-listengone", unix_listen_gone},
	{"unixdg", unixdg_new}, {"unixdg-bound", unixdg_bound}, {"unixdg-pair", unixdg_pair}, {"unixdg-data", unixdg_data},
	{"unixdg-closed", unixdg_closed}, {"unixdg-full", unixdg_full}, {"unixseq", unixseq_new}, {"unixseq-pair", unixseq_pair},
	{"unixseq-data", unixseq_data}, {"unixseq-closed", unixseq_closed}, {"unixseq-listen", unixseq_listen},
	{"tcp", tcp_new}, {"tcp-bound", tcp_bound}, {"tcp-listen", tcp_listen}, {"tcp-waiting", tcp_listen_waiting},
	{"tcp-listenshut", tcp_listen_shut}, {"tcp-conn", tcp_connected}, {"tcp-accepted", tcp_accepted}, {"tcp-data", tcp_data},
	{"tcp-eof", tcp_closed}, {"tcp-shutw", tcp_shut_write}, {"tcp-shutr", tcp_shut_read}, {"tcp-shut", tcp_shut_both},
	{"tcp-ended", tcp_last_ack}, {"tcp-reset", tcp_reset}, {"tcp-gone", tcp_peer_gone}, {"tcp-refused", tcp_refused},
	{"tcp-disconnected", tcp_disconnected},
	{"tcp6", tcp6_new}, {"tcp6-listen", tcp6_listen}, {"tcp6-conn", tcp6_connected}, {"tcp6-mapped", tcp6_mapped},
	{"udp", udp_new}, {"udp-bound", udp_bound}, {"udp-conn", udp_connected}, {"udp-data", udp_data}, {"udp-refused", udp_refused},
	{"udp-shut", udp_shut}, {"udp6", udp6_new}, {"udp6-bound", udp6_bound}, {"udp6-conn", udp6_connected}, {"udp6-mapped", udp6_mapped},
	{"netlink", netlink_new}, {"netlink-bound", netlink_bound}, {"rawicmp", raw_icmp}, {"raw", raw_any}, {"raw6", raw6}, {"ping", ping_new},
	{},
};

static const kind fresh_kinds[] = {
	{"unix", unix_new}, {"unix-pair", unix_pair}, {"unixdg", unixdg_new}, {"unixseq", unixseq_new}, {"tcp", tcp_new}, {"tcp-listen", tcp_listen},
	{"tcp-conn", tcp_connected}, {"tcp6", tcp6_new}, {"tcp6-conn", tcp6_connected}, {"udp", udp_new}, {"udp6", udp6_new}, {"udp-conn", udp_connected},
	{"netlink", netlink_new}, {"rawicmp", raw_icmp}, {"raw6", raw6},
	{},
};

static const struct { const char *name; int number, count; } levels[] = {
	{"socket", SOL_SOCKET, 80}, {"ip", IPPROTO_IP, 52}, {"tcp", IPPROTO_TCP, 42}, {"udp", IPPROTO_UDP, 10}, {"ipv6", IPPROTO_IPV6, 82},
	{"udplite", IPPROTO_UDPLITE, 4}, {"icmp", IPPROTO_ICMP, 3}, {"raw", IPPROTO_RAW, 3}, {"icmpv6", IPPROTO_ICMPV6, 3},
	{"netlink", SOL_NETLINK, 14}, {"packet", 263, 3}, {"level99", 99, 3}, {"level-1", -1, 2},
};

// tells_time says which options tell of time, or of what differs between two runs.
static int tells_time(int level, int option)
{
	if (level == SOL_SOCKET)
		return option == SO_PEERNAME || option == SO_RCVLOWAT || option == SO_PEERCRED || option == SO_INCOMING_CPU || option == 55 || option == 56 || option == 57 || option == 64 || option == 71;
	if (level == IPPROTO_TCP)
		return option == TCP_INFO || option == TCP_TIMESTAMP || option == TCP_CC_INFO || option == 35 || option == 40;
	return level == IPPROTO_IPV6 && option == 6;
}

static void got(int level, int option, long rc, socklen_t n)
{
	if (result(rc) != 0)
		return;
	note("%d", n);
	if (n > 0 && n <= 64 && !tells_time(level, option))
		note_bytes(buffer, n);
}

static void get(subject *s, int level, int option, socklen_t n)
{
	memset(buffer, 0, 256);
	long rc = S(getsockopt, s->fd, level, option, P(buffer), P(&n));
	got(level, option, rc, n);
}

static void set(subject *s, int level, int option, int value, long n)
{
	memset(buffer, 0, 256);
	memcpy(buffer, &value, 4);
	if (result(S(setsockopt, s->fd, level, option, P(buffer), n)) == 0)
		get(s, level, option, 4);
}

// risky options need more than a number to be set.
static int risky(int level, int option)
{
	return level == SOL_SOCKET && (option == 49 || option == 50); // BPF programs by number
}

static void option_cases(subject *s, int level, int option)
{
	static const int values[] = {0, 1, -1, 2, 255, 256, 65536, INT_MAX, INT_MIN};
	static const int lengths[] = {0, 1, 2, 3, 5, 8, 12, 16, 40, 200, -1};
	socklen_t n = 4;
	CASE("get4") get(s, level, option, 4);
	EACH(i, 0, 10, "getlength") get(s, level, option, lengths[i]);
	CASE("bad")
	{
		result(S(getsockopt, s->fd, level, option, P(bad), P(&n)));
		result(S(getsockopt, s->fd, level, option, P(buffer), P(bad)));
		if (risky(level, option))
			return;
		result(S(setsockopt, s->fd, level, option, P(bad), 4));
		result(S(setsockopt, s->fd, level, option, 0, 4));
	}
	if (risky(level, option))
		return;
	EACH(i, 0, 8, "set") set(s, level, option, values[i], 4);
	EACH(i, 0, 10, "setlength") set(s, level, option, 1, lengths[i]);
}

#define LEVEL(function, at)                                                       \
	static void function(subject *s)                                          \
	{                                                                         \
		static char prefix[32];                                           \
		for (int option = 0; option < levels[at].count; option++) {       \
			snprintf(prefix, sizeof prefix, "%d:", option);           \
			want_prefix(prefix);                                      \
			option_cases(s, levels[at].number, option);               \
		}                                                                 \
		want_prefix("");                                                  \
	}                                                                         \
	static void function##_states(subject *s)                                 \
	{                                                                         \
		EACH(option, 0, levels[at].count - 1, "get") get(s, levels[at].number, option, 8); \
		EACH(option, 0, levels[at].count - 1, "set")                      \
			if (!risky(levels[at].number, option))                    \
				set(s, levels[at].number, option, 1, 4);          \
	}
LEVEL(level_socket, 0)
LEVEL(level_ip, 1)
LEVEL(level_tcp, 2)
LEVEL(level_udp, 3)
LEVEL(level_ipv6, 4)
LEVEL(level_udplite, 5)
LEVEL(level_icmp, 6)
LEVEL(level_raw, 7)
LEVEL(level_icmpv6, 8)
LEVEL(level_netlink, 9)
LEVEL(level_packet, 10)
LEVEL(level_99, 11)
LEVEL(level_minus, 12)

static const call options[] = {
	{"socket", level_socket}, {"ip", level_ip}, {"tcp", level_tcp}, {"udp", level_udp}, {"ipv6", level_ipv6},
	{"udplite", level_udplite}, {"icmp", level_icmp}, {"raw", level_raw}, {"icmpv6", level_icmpv6}, {"netlink", level_netlink},
	{"packet", level_packet}, {"level99", level_99}, {"level-1", level_minus},
	{},
};

static const call states[] = {
	{"opt-socket", level_socket_states}, {"opt-ip", level_ip_states}, {"opt-tcp", level_tcp_states}, {"opt-udp", level_udp_states},
	{"opt-ipv6", level_ipv6_states}, {"opt-netlink", level_netlink_states},
	{"bind", call_bind}, {"listen", call_listen}, {"accept", call_accept}, {"connect", call_connect}, {"send", call_send}, {"recv", call_recv},
	{"names", call_names}, {"shutdown", call_shutdown}, {"poll", call_poll}, {"read", call_read}, {"write", call_write},
	{"ioctl", call_ioctl}, {"splice-in", call_splice_in}, {"splice-out", call_splice_out}, {"select", call_select}, {"epoll", call_epoll},
	{},
};

const table options_table = {"options", fresh_kinds, options};
const table sockets_table = {"sockets", socket_kinds, states};
