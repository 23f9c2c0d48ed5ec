// The kinds of subjects that tables share.
#pragma once
#include "abi.h"

extern const kind file_kinds[], socket_kinds[];

#define MAKER(name) void name(subject *s)
MAKER(unix_new); MAKER(unix_bound); MAKER(unix_listen); MAKER(unix_connected); MAKER(unix_data); MAKER(unix_closed);
MAKER(unix_shut_write); MAKER(unix_shut_read); MAKER(unix_both); MAKER(unix_peer_shut); MAKER(unix_stale); MAKER(unix_pair);
MAKER(unix_listen_gone);
MAKER(unixdg_new); MAKER(unixdg_bound); MAKER(unixdg_pair); MAKER(unixdg_closed); MAKER(unixdg_data); MAKER(unixdg_full);
MAKER(unixseq_new); MAKER(unixseq_pair); MAKER(unixseq_listen); MAKER(unixseq_closed); MAKER(unixseq_data);
MAKER(tcp_new); MAKER(tcp_bound); MAKER(tcp_listen); MAKER(tcp_listen_waiting); MAKER(tcp_connected); MAKER(tcp_data);
MAKER(tcp_closed); MAKER(tcp_reset); MAKER(tcp_shut_write); MAKER(tcp_shut_read); MAKER(tcp_shut_both); MAKER(tcp_refused);
MAKER(tcp_listen_shut); MAKER(tcp_peer_gone); MAKER(tcp_accepted); MAKER(tcp_disconnected);
MAKER(tcp_last_ack);
MAKER(tcp6_new); MAKER(tcp6_listen); MAKER(tcp6_connected); MAKER(tcp6_mapped);
MAKER(udp_new); MAKER(udp_bound); MAKER(udp_connected); MAKER(udp_data); MAKER(udp_refused); MAKER(udp_shut); MAKER(udp6_new);
MAKER(udp6_bound); MAKER(udp6_connected); MAKER(udp6_mapped);
MAKER(netlink_new); MAKER(netlink_bound); MAKER(raw_icmp); MAKER(raw_any); MAKER(raw6); MAKER(packet_new); MAKER(ping_new);
