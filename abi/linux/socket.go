package linux

// Address families (include/linux/socket.h).
const (
	AF_UNSPEC  = 0
	AF_UNIX    = 1
	AF_INET    = 2
	AF_INET6   = 10
	AF_NETLINK = 16
	AF_PACKET  = 17
	AF_MAX     = 46
)

// Socket types and the flags that socket(2) and accept4(2) take with them.
const (
	SOCK_STREAM    = 1
	SOCK_DGRAM     = 2
	SOCK_RAW       = 3
	SOCK_RDM       = 4
	SOCK_SEQPACKET = 5
	SOCK_PACKET    = 10
	SOCK_TYPE_MASK = 0xf
	SOCK_CLOEXEC   = O_CLOEXEC
	SOCK_NONBLOCK  = O_NONBLOCK
)

// Protocols (include/uapi/linux/in.h).
const (
	IPPROTO_IP      = 0
	IPPROTO_ICMP    = 1
	IPPROTO_TCP     = 6
	IPPROTO_UDP     = 17
	IPPROTO_UDPLITE = 136
	IPPROTO_IPV6    = 41
	IPPROTO_ICMPV6  = 58
	IPPROTO_RAW     = 255
	IPPROTO_MAX     = 263
)

// Flags of send(2) and recv(2) and their kin.
const (
	MSG_OOB          = 0x1
	MSG_PEEK         = 0x2
	MSG_DONTROUTE    = 0x4
	MSG_CTRUNC       = 0x8
	MSG_PROBE        = 0x10
	MSG_TRUNC        = 0x20
	MSG_DONTWAIT     = 0x40
	MSG_EOR          = 0x80
	MSG_WAITALL      = 0x100
	MSG_CONFIRM      = 0x800
	MSG_ERRQUEUE     = 0x2000
	MSG_NOSIGNAL     = 0x4000
	MSG_MORE         = 0x8000
	MSG_WAITFORONE   = 0x10000
	MSG_BATCH        = 0x40000
	MSG_ZEROCOPY     = 0x4000000
	MSG_FASTOPEN     = 0x20000000
	MSG_CMSG_CLOEXEC = 0x40000000
)

// How of shutdown(2).
const (
	SHUT_RD   = 0
	SHUT_WR   = 1
	SHUT_RDWR = 2
)

// Limits.
const (
	SOMAXCONN   = 4096
	UIO_MAXIOV  = 1024
	SCM_MAX_FD  = 253
	IFNAMSIZ    = 16
	SizeofUcred = 12
)

// Levels of setsockopt(2) that are not protocol numbers.
const (
	SOL_SOCKET  = 1
	SOL_NETLINK = 270
)

// Options at SOL_SOCKET (include/uapi/asm-generic/socket.h).
const (
	SO_DEBUG             = 1
	SO_REUSEADDR         = 2
	SO_TYPE              = 3
	SO_ERROR             = 4
	SO_DONTROUTE         = 5
	SO_BROADCAST         = 6
	SO_SNDBUF            = 7
	SO_RCVBUF            = 8
	SO_KEEPALIVE         = 9
	SO_OOBINLINE         = 10
	SO_NO_CHECK          = 11
	SO_PRIORITY          = 12
	SO_LINGER            = 13
	SO_REUSEPORT         = 15
	SO_PASSCRED          = 16
	SO_PEERCRED          = 17
	SO_RCVLOWAT          = 18
	SO_SNDLOWAT          = 19
	SO_RCVTIMEO          = 20
	SO_SNDTIMEO          = 21
	SO_BINDTODEVICE      = 25
	SO_ATTACH_FILTER     = 26
	SO_DETACH_FILTER     = 27
	SO_TIMESTAMP         = 29
	SO_ACCEPTCONN        = 30
	SO_PEERSEC           = 31
	SO_SNDBUFFORCE       = 32
	SO_RCVBUFFORCE       = 33
	SO_PASSSEC           = 34
	SO_TIMESTAMPNS       = 35
	SO_MARK              = 36
	SO_PROTOCOL          = 38
	SO_DOMAIN            = 39
	SO_INCOMING_CPU      = 49
	SO_ATTACH_REUSEPORT  = 51
	SO_PEERGROUPS        = 59
	SO_RCVTIMEO_NEW      = 66
	SO_SNDTIMEO_NEW      = 67
	SO_PREFER_BUSY_POLL  = 69
	SCM_RIGHTS           = 1
	SCM_CREDENTIALS      = 2
	SCM_TIMESTAMP        = SO_TIMESTAMP
	SCM_TIMESTAMPNS      = SO_TIMESTAMPNS
	SizeofCmsghdr        = 16
	SizeofSockaddrIn     = 16
	SizeofSockaddrIn6    = 28
	SizeofSockaddrUn     = 110
	SizeofSockaddrNl     = 12
	SizeofMsghdr         = 56
	SizeofMmsghdr        = 64
	SizeofSockaddrSpace  = 128
	SizeofLinger         = 8
	SizeofTCPInfo        = 232
	TCP_CA_NAME_MAX      = 16
	UNIX_PATH_MAX        = 108
	SIOCINQ              = 0x541B // FIONREAD
	SIOCOUTQ             = 0x5411 // TIOCOUTQ
	FIOSETOWN            = 0x8901
	SIOCSPGRP            = 0x8902
	FIOGETOWN            = 0x8903
	SIOCGPGRP            = 0x8904
	SIOCATMARK           = 0x8905
	SIOCGSTAMP           = 0x8906
	SIOCGSTAMPNS         = 0x8907
	DefaultSocketBuffer  = 212992 // net.core.{w,r}mem_default and _max
	MinimumSendBuffer    = 4608
	MinimumReceiveBuffer = 2304
)

// Options at IPPROTO_TCP (include/uapi/linux/tcp.h).
const (
	TCP_NODELAY              = 1
	TCP_MAXSEG               = 2
	TCP_CORK                 = 3
	TCP_KEEPIDLE             = 4
	TCP_KEEPINTVL            = 5
	TCP_KEEPCNT              = 6
	TCP_SYNCNT               = 7
	TCP_LINGER2              = 8
	TCP_DEFER_ACCEPT         = 9
	TCP_WINDOW_CLAMP         = 10
	TCP_INFO                 = 11
	TCP_QUICKACK             = 12
	TCP_CONGESTION           = 13
	TCP_USER_TIMEOUT         = 18
	TCP_FASTOPEN             = 23
	TCP_TIMESTAMP            = 24
	TCP_NOTSENT_LOWAT        = 25
	TCP_FASTOPEN_CONNECT     = 30
	TCP_MIN_KEEPALIVE_CLAMP  = 32767
	TCP_FASTOPEN_NO_COOKIE   = 34
	TCP_INQ                  = 36
	UDP_CORK                 = 1
	UDP_SEGMENT              = 103
	UDP_GRO                  = 104
	MAX_TCP_KEEPCNT          = 127
	MAX_TCP_SYNCNT           = 127
	TCPI_OPT_TIMESTAMPS      = 1
	TCPI_OPT_SACK            = 2
	TCPI_OPT_WSCALE          = 4
	DefaultTCPKeepIdle       = 7200
	DefaultTCPKeepInterval   = 75
	DefaultTCPKeepCount      = 9
	DefaultTCPSynRetries     = 6
	DefaultTCPFinWait2Second = 60
)

// TCP connection states as TCP_INFO and /proc/net/tcp show them
// (include/net/tcp_states.h).
const (
	TCP_ESTABLISHED = 1
	TCP_SYN_SENT    = 2
	TCP_SYN_RECV    = 3
	TCP_FIN_WAIT1   = 4
	TCP_FIN_WAIT2   = 5
	TCP_TIME_WAIT   = 6
	TCP_CLOSE       = 7
	TCP_CLOSE_WAIT  = 8
	TCP_LAST_ACK    = 9
	TCP_LISTEN      = 10
	TCP_CLOSING     = 11
)

// Options at IPPROTO_IP (include/uapi/linux/in.h).
const (
	IP_TOS                    = 1
	IP_TTL                    = 2
	IP_HDRINCL                = 3
	IP_OPTIONS                = 4
	IP_RECVOPTS               = 6
	IP_PKTINFO                = 8
	IP_MTU_DISCOVER           = 10
	IP_RECVERR                = 11
	IP_RECVTTL                = 12
	IP_RECVTOS                = 13
	IP_MTU                    = 14
	IP_FREEBIND               = 15
	IP_TRANSPARENT            = 19
	IP_RECVORIGDSTADDR        = 20
	IP_BIND_ADDRESS_NO_PORT   = 24
	IP_MULTICAST_IF           = 32
	IP_MULTICAST_TTL          = 33
	IP_MULTICAST_LOOP         = 34
	IP_ADD_MEMBERSHIP         = 35
	IP_DROP_MEMBERSHIP        = 36
	IP_MULTICAST_ALL          = 49
	IP_LOCAL_PORT_RANGE       = 51
	IPV6_ADDRFORM             = 1
	IPV6_UNICAST_HOPS         = 16
	IPV6_MULTICAST_IF         = 17
	IPV6_MULTICAST_HOPS       = 18
	IPV6_MULTICAST_LOOP       = 19
	IPV6_ADD_MEMBERSHIP       = 20
	IPV6_DROP_MEMBERSHIP      = 21
	IPV6_MTU_DISCOVER         = 23
	IPV6_MTU                  = 24
	IPV6_RECVERR              = 25
	IPV6_V6ONLY               = 26
	IPV6_RECVPKTINFO          = 49
	IPV6_PKTINFO              = 50
	IPV6_RECVHOPLIMIT         = 51
	IPV6_HOPLIMIT             = 52
	IPV6_RECVTCLASS           = 66
	IPV6_TCLASS               = 67
	IPV6_FREEBIND             = 78
	ICMP_FILTER               = 1
	IP_PMTUDISC_DONT          = 0
	IP_PMTUDISC_WANT          = 1
	IP_PMTUDISC_DO            = 2
	IP_PMTUDISC_PROBE         = 3
	DefaultTTL                = 64
	SizeofIPMreq              = 8
	SizeofIPMreqn             = 12
	SizeofIPv6Mreq            = 20
	SizeofInPktinfo           = 12
	SizeofIn6Pktinfo          = 20
	SOL_RAW                   = 255
	SOL_ICMPV6                = 58
	ICMPV6_FILTER             = 1
	IPV6_CHECKSUM             = 7
	IP_MINTTL                 = 21
	IP_UNICAST_IF             = 50
	IPV6_UNICAST_IF           = 76
	IPV6_AUTOFLOWLABEL        = 70
	IPV6_TRANSPARENT          = 75
	IPV6_RECVORIGDSTADDR      = 74
	IPV6_ADDR_PREFERENCES     = 72
	IPV6_MULTICAST_ALL        = 29
	IP_PASSSEC                = 18
	IP_ROUTER_ALERT           = 5
	IP_PKTOPTIONS             = 9
	IP_RETOPTS                = 7
	IP_MSFILTER               = 41
	IP_BLOCK_SOURCE           = 38
	IP_UNBLOCK_SOURCE         = 37
	IP_ADD_SOURCE_MEMBERSHIP  = 39
	IP_DROP_SOURCE_MEMBERSHIP = 40
)

// Ucred is struct ucred.
type Ucred struct {
	PID int32
	UID uint32
	GID uint32
}
