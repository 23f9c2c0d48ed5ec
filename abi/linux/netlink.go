package linux

// Netlink families (include/uapi/linux/netlink.h).
const (
	NETLINK_ROUTE          = 0
	NETLINK_SOCK_DIAG      = 4
	NETLINK_KOBJECT_UEVENT = 15
)

// Messages of all families, their flags and sizes.
const (
	NLMSG_NOOP  = 1
	NLMSG_ERROR = 2
	NLMSG_DONE  = 3

	NLM_F_REQUEST  = 0x1
	NLM_F_MULTI    = 0x2
	NLM_F_ACK      = 0x4
	NLM_F_ROOT     = 0x100
	NLM_F_MATCH    = 0x200
	NLM_F_DUMP     = NLM_F_ROOT | NLM_F_MATCH
	NLM_F_REPLACE  = 0x100
	NLM_F_EXCL     = 0x200
	NLM_F_CREATE   = 0x400
	NLM_F_APPEND   = 0x800
	NLA_TYPE_FLAGS = 0xc000
	NLM_F_CAPPED   = 0x100 // of an acknowledgement: the request is not repeated

	SizeofNlMsghdr  = 16
	SizeofRtAttr    = 4
	SizeofIfInfomsg = 16
	SizeofIfAddrmsg = 8
	SizeofRtMsg     = 12

	NETLINK_ADD_MEMBERSHIP   = 1
	NETLINK_DROP_MEMBERSHIP  = 2
	NETLINK_PKTINFO          = 3
	NETLINK_BROADCAST_ERROR  = 4
	NETLINK_NO_ENOBUFS       = 5
	NETLINK_LISTEN_ALL_NSID  = 8
	NETLINK_LIST_MEMBERSHIPS = 9
	NETLINK_CAP_ACK          = 10
	NETLINK_EXT_ACK          = 11
	NETLINK_GET_STRICT_CHK   = 12
)

// Messages of NETLINK_ROUTE and their attributes (include/uapi/linux/rtnetlink.h,
// if_link.h, if_addr.h).
const (
	RTM_NEWLINK  = 16
	RTM_DELLINK  = 17
	RTM_GETLINK  = 18
	RTM_SETLINK  = 19
	RTM_NEWADDR  = 20
	RTM_DELADDR  = 21
	RTM_GETADDR  = 22
	RTM_NEWROUTE = 24
	RTM_DELROUTE = 25
	RTM_GETROUTE = 26
	RTM_NEWNEIGH = 28
	RTM_DELNEIGH = 29
	RTM_GETNEIGH = 30
	RTM_NEWRULE  = 32
	RTM_DELRULE  = 33
	RTM_GETRULE  = 34
	RTM_GETQDISC = 38
	RTM_MAX      = 123

	IFLA_ADDRESS   = 1
	IFLA_BROADCAST = 2
	IFLA_IFNAME    = 3
	IFLA_MTU       = 4
	IFLA_QDISC     = 6
	IFLA_STATS     = 7
	IFLA_TXQLEN    = 13
	IFLA_OPERSTATE = 16
	IFLA_LINKMODE  = 17
	IFLA_STATS64   = 23
	IFLA_GROUP     = 27

	IFLA_PROMISCUITY     = 30
	IFLA_NUM_TX_QUEUES   = 31
	IFLA_NUM_RX_QUEUES   = 32
	IFLA_CARRIER         = 33
	IFLA_CARRIER_CHANGES = 35
	IFLA_PROTO_DOWN      = 39

	IFLA_LINKINFO   = 18
	IF_OPER_DOWN    = 2
	IF_OPER_UNKNOWN = 0
	IF_OPER_UP      = 6

	IFA_ADDRESS   = 1
	IFA_LOCAL     = 2
	IFA_LABEL     = 3
	IFA_BROADCAST = 4
	IFA_CACHEINFO = 6
	IFA_FLAGS     = 8

	SizeofIfaCacheinfo = 16

	IFA_RT_PRIORITY = 9
	IFA_PROTO       = 11

	IFAPROT_KERNEL_LO = 1
	IFAPROT_KERNEL_RA = 2
	IFAPROT_KERNEL_LL = 3

	IFA_F_SECONDARY      = 0x01
	IFA_F_NODAD          = 0x02
	IFA_F_HOMEADDRESS    = 0x10
	IFA_F_DEPRECATED     = 0x20
	IFA_F_PERMANENT      = 0x80
	IFA_F_MANAGETEMPADDR = 0x100
	IFA_F_NOPREFIXROUTE  = 0x200
	IFA_F_MCAUTOJOIN     = 0x400

	RT_SCOPE_UNIVERSE = 0
	RT_SCOPE_LINK     = 253
	RT_SCOPE_SITE     = 200
	RT_SCOPE_HOST     = 254
	RT_SCOPE_NOWHERE  = 255
	RT_TABLE_COMPAT   = 252
	RT_TABLE_DEFAULT  = 253
	RT_TABLE_MAIN     = 254
	RT_TABLE_LOCAL    = 255
	RTPROT_KERNEL     = 2
	RTPROT_RA         = 9
	RTPROT_BOOT       = 3
	RTN_UNICAST       = 1
	RTN_LOCAL         = 2
	RTN_BROADCAST     = 3
	RTN_MULTICAST     = 5
	RTN_BLACKHOLE     = 6
	RTN_UNREACHABLE   = 7
	RTN_PROHIBIT      = 8
	RTN_THROW         = 9
	RTM_F_CLONED      = 0x200
	RTCF_LOCAL        = 0x80000000

	RTA_DST            = 1
	RTA_OIF            = 4
	RTA_GATEWAY        = 5
	RTA_PRIORITY       = 6
	RTA_PREFSRC        = 7
	RTA_METRICS        = 8
	RTA_MULTIPATH      = 9
	RTA_VIA            = 18
	RTA_CACHEINFO      = 12
	RTA_TABLE          = 15
	RTA_PREF           = 20
	RTA_UID            = 25
	SizeofRtaCacheinfo = 32
)

// Rules of routing (include/uapi/linux/fib_rules.h).
const (
	FR_ACT_TO_TBL = 1
	FR_ACT_GOTO   = 2
	FR_ACT_NOP    = 3

	FIB_RULE_IIF_DETACHED = 0x8
	FIB_RULE_OIF_DETACHED = 0x10

	FRA_DST                = 1
	FRA_SRC                = 2
	FRA_IIFNAME            = 3
	FRA_GOTO               = 4
	FRA_PRIORITY           = 6
	FRA_FWMARK             = 10
	FRA_FLOW               = 11
	FRA_TUN_ID             = 12
	FRA_SUPPRESS_IFGROUP   = 13
	FRA_SUPPRESS_PREFIXLEN = 14
	FRA_TABLE              = 15
	FRA_FWMASK             = 16
	FRA_OIFNAME            = 17
	FRA_L3MDEV             = 19
	FRA_UID_RANGE          = 20
	FRA_PROTOCOL           = 21
	FRA_IP_PROTO           = 22
	FRA_SPORT_RANGE        = 23
	FRA_DPORT_RANGE        = 24

	SizeofFibRuleHdr = 12
)

// Neighbours (include/uapi/linux/neighbour.h).
const (
	NDA_DST       = 1
	NDA_LLADDR    = 2
	NDA_CACHEINFO = 3
	NDA_PROBES    = 4

	NUD_INCOMPLETE = 0x01
	NUD_REACHABLE  = 0x02
	NUD_STALE      = 0x04
	NUD_DELAY      = 0x08
	NUD_PROBE      = 0x10
	NUD_FAILED     = 0x20
	NUD_NOARP      = 0x40
	NUD_PERMANENT  = 0x80

	SizeofNdmsg        = 12
	SizeofNdaCacheinfo = 16
)

// Multicast groups of NETLINK_ROUTE.
const (
	RTNLGRP_LINK        = 1
	RTNLGRP_NEIGH       = 3
	RTNLGRP_IPV4_IFADDR = 5
	RTNLGRP_IPV4_ROUTE  = 7
	RTNLGRP_IPV4_RULE   = 8
	RTNLGRP_IPV6_IFADDR = 9
	RTNLGRP_IPV6_ROUTE  = 11
	RTNLGRP_IPV6_RULE   = 19
)

// RTNLGRP_MAX is the last multicast group of NETLINK_ROUTE.
const RTNLGRP_MAX = 36
