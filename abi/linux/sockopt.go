package linux

// Options at SOL_SOCKET beyond those that every socket family looks at
// (include/uapi/asm-generic/socket.h).
const (
	SO_BSDCOMPAT             = 14
	SO_GET_FILTER            = SO_ATTACH_FILTER
	SO_PEERNAME              = 28
	SO_TIMESTAMPING          = 37
	SO_RXQ_OVFL              = 40
	SO_WIFI_STATUS           = 41
	SO_PEEK_OFF              = 42
	SO_NOFCS                 = 43
	SO_LOCK_FILTER           = 44
	SO_SELECT_ERR_QUEUE      = 45
	SO_BUSY_POLL             = 46
	SO_MAX_PACING_RATE       = 47
	SO_BPF_EXTENSIONS        = 48
	SO_ATTACH_BPF            = 50
	SO_ATTACH_REUSEPORT_CBPF = 51
	SO_ATTACH_REUSEPORT_EBPF = 52
	SO_CNX_ADVICE            = 53
	SO_MEMINFO               = 55
	SO_INCOMING_NAPI_ID      = 56
	SO_COOKIE                = 57
	SO_ZEROCOPY              = 60
	SO_TXTIME                = 61
	SO_BINDTOIFINDEX         = 62
	SO_TIMESTAMP_NEW         = 63
	SO_TIMESTAMPNS_NEW       = 64
	SO_TIMESTAMPING_NEW      = 65

	SCM_TSTAMP_SND          = 0
	SCM_TSTAMP_SCHED        = 1
	SO_DETACH_REUSEPORT_BPF = 68
	SO_BUSY_POLL_BUDGET     = 70
	SO_NETNS_COOKIE         = 71
	SO_BUF_LOCK             = 72
	SO_RESERVE_MEM          = 73
	SO_TXREHASH             = 74
	SO_RCVMARK              = 75

	SOCK_SNDBUF_LOCK   = 1
	SOCK_RCVBUF_LOCK   = 2
	SizeofMeminfo      = 36
	SizeofTimestamping = 8
	SizeofTxtime       = 8
	SizeofSockFprog    = 16
	SizeofSockFilter   = 8

	SOF_TIMESTAMPING_MASK = 1<<16 - 1
	SOF_TXTIME_MASK       = 3
)

// Options at IPPROTO_TCP that only repair, tracing and special transports use.
const (
	TCP_THIN_LINEAR_TIMEOUTS = 16
	TCP_THIN_DUPACK          = 17
	TCP_REPAIR               = 19
	TCP_REPAIR_QUEUE         = 20
	TCP_QUEUE_SEQ            = 21
	TCP_REPAIR_OPTIONS       = 22
	TCP_CC_INFO              = 26
	TCP_SAVE_SYN             = 27
	TCP_SAVED_SYN            = 28
	TCP_REPAIR_WINDOW        = 29
	TCP_ULP                  = 31
	TCP_FASTOPEN_KEY         = 33
	TCP_ZEROCOPY_RECEIVE     = 35
	TCP_TX_DELAY             = 37
	TCP_CM_INQ               = TCP_INQ
	TCP_FIN_TIMEOUT_MAX      = 120 // seconds
	TCP_MAX_WINDOW           = 32767
	TCP_MIN_MSS              = 88
	TCP_MSS_DEFAULT          = 536
	TCP_RTO_MAX              = 120 // seconds
)

// Options at IPPROTO_UDP.
const (
	UDP_ENCAP        = 100
	UDP_NO_CHECK6_TX = 101
	UDP_NO_CHECK6_RX = 102
	SOL_UDPLITE      = 136
)

// Options at IPPROTO_IP and IPPROTO_IPV6.
const (
	IP_XFRM_POLICY            = 17
	IP_NODEFRAG               = 22
	IP_CHECKSUM               = 23
	IP_RECVFRAGSIZE           = 25
	IP_RECVERR_RFC4884        = 26
	IP_PROTOCOL               = 52
	IP_PMTUDISC_OMIT          = 5
	MCAST_JOIN_GROUP          = 42
	MCAST_BLOCK_SOURCE        = 43
	MCAST_UNBLOCK_SOURCE      = 44
	MCAST_LEAVE_GROUP         = 45
	MCAST_JOIN_SOURCE_GROUP   = 46
	MCAST_LEAVE_SOURCE_GROUP  = 47
	MCAST_MSFILTER            = 48
	IPV6_2292PKTINFO          = 2
	IPV6_2292HOPOPTS          = 3
	IPV6_2292DSTOPTS          = 4
	IPV6_2292RTHDR            = 5
	IPV6_2292PKTOPTIONS       = 6
	IPV6_2292HOPLIMIT         = 8
	IPV6_FLOWINFO             = 11
	IPV6_ROUTER_ALERT         = 22
	IPV6_JOIN_ANYCAST         = 27
	IPV6_LEAVE_ANYCAST        = 28
	IPV6_ROUTER_ALERT_ISOLATE = 30
	IPV6_RECVERR_RFC4884      = 31
	IPV6_FLOWLABEL_MGR        = 32
	IPV6_FLOWINFO_SEND        = 33
	IPV6_HDRINCL              = 36
	IPV6_RECVHOPOPTS          = 53
	IPV6_HOPOPTS              = 54
	IPV6_RTHDRDSTOPTS         = 55
	IPV6_RECVRTHDR            = 56
	IPV6_RTHDR                = 57
	IPV6_RECVDSTOPTS          = 58
	IPV6_DSTOPTS              = 59
	IPV6_RECVPATHMTU          = 60
	IPV6_PATHMTU              = 61
	IPV6_DONTFRAG             = 62
	IPV6_MINHOPCOUNT          = 73
	IPV6_RECVFRAGSIZE         = 77
	IPV6_ORIGDSTADDR          = IPV6_RECVORIGDSTADDR
	IP_ORIGDSTADDR            = IP_RECVORIGDSTADDR
	IPV6_MIN_MTU              = 1280
)

// Ethernet protocols (include/uapi/linux/if_ether.h).
const (
	ETH_P_LOOP = 0x0060
	ETH_P_ALL  = 0x0003
	ETH_P_IP   = 0x0800
	ETH_P_ARP  = 0x0806
	ETH_P_IPV6 = 0x86dd
)
