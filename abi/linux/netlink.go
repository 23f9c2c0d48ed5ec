package linux

// Netlink families (include/uapi/linux/netlink.h).
const (
	NETLINK_ROUTE          = 0
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
	RTM_GETNEIGH = 30
	RTM_GETRULE  = 34
	RTM_GETQDISC = 38
	RTM_MAX      = 123

	IFLA_ADDRESS   = 1
	IFLA_BROADCAST = 2
	IFLA_IFNAME    = 3
	IFLA_MTU       = 4
	IFLA_QDISC     = 6
	IFLA_TXQLEN    = 13
	IFLA_OPERSTATE = 16
	IFLA_LINKMODE  = 17
	IFLA_STATS64   = 23
	IFLA_GROUP     = 27

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

	IFA_F_PERMANENT = 0x80

	RT_SCOPE_UNIVERSE = 0
	RT_SCOPE_LINK     = 253
	RT_SCOPE_HOST     = 254
	RT_SCOPE_NOWHERE  = 255
	RT_TABLE_MAIN     = 254
	RTPROT_KERNEL     = 2
	RTPROT_BOOT       = 3
	RTN_UNICAST       = 1
	RTN_LOCAL         = 2
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
	RTA_UID            = 25
	SizeofRtaCacheinfo = 32
)

// Multicast groups of NETLINK_ROUTE.
const (
	RTNLGRP_LINK        = 1
	RTNLGRP_IPV4_IFADDR = 5
	RTNLGRP_IPV4_ROUTE  = 7
	RTNLGRP_IPV6_IFADDR = 9
	RTNLGRP_IPV6_ROUTE  = 11
)

// RTNLGRP_MAX is the last multicast group of NETLINK_ROUTE.
const RTNLGRP_MAX = 36
