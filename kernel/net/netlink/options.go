package netlink

import (
	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/creds"
	"hardtack/kernel/net/sock"
)

// maxGroup is the last multicast group of NETLINK_ROUTE; other protocols have 32.
const maxGroup = linux.RTNLGRP_MAX

// flagOptions are options of SOL_NETLINK that are on or off.
const flagOptions = 1<<linux.NETLINK_PKTINFO | 1<<linux.NETLINK_BROADCAST_ERROR | 1<<linux.NETLINK_NO_ENOBUFS |
	1<<linux.NETLINK_CAP_ACK | 1<<linux.NETLINK_EXT_ACK | 1<<linux.NETLINK_GET_STRICT_CHK

func isFlag(name int32) bool { return name > 0 && name < 32 && flagOptions>>name&1 != 0 }

// SetOpt is setsockopt(2).
func (s *Sock) SetOpt(c *caller.Ctx, level, name int32, val []byte) linux.Errno {
	switch level {
	case linux.SOL_SOCKET:
		return s.SetSocketOpt(c, name, val)
	case linux.SOL_NETLINK:
	default:
		return linux.ENOPROTOOPT
	}
	v, e := sock.Int(val)
	if e != 0 {
		return e
	}
	switch {
	case name == linux.NETLINK_ADD_MEMBERSHIP || name == linux.NETLINK_DROP_MEMBERSHIP:
		if v <= 0 || v > maxGroup {
			return linux.EINVAL
		}
		if name == linux.NETLINK_ADD_MEMBERSHIP {
			s.groups.Or(1 << (v - 1))
		} else {
			s.groups.And(^(uint64(1) << (v - 1)))
		}
		return 0
	case name == linux.NETLINK_LISTEN_ALL_NSID: // there is one namespace
		if !c.Cred().Has(creds.CapNetBroadcast) {
			return linux.EPERM
		}
		return 0
	case isFlag(name):
		if s.flags.And(^(uint32(1) << name)); v != 0 {
			s.flags.Or(1 << name)
		}
		return 0
	}
	return linux.ENOPROTOOPT
}

// GetOpt is getsockopt(2).
func (s *Sock) GetOpt(_ *caller.Ctx, level, name int32, val []byte) (int, linux.Errno) {
	switch {
	case level == linux.SOL_SOCKET:
		return s.GetSocketOpt(name, val)
	case level != linux.SOL_NETLINK:
	case name == linux.NETLINK_LIST_MEMBERSHIPS:
		var b [8]byte
		sock.PutUint64(b[:], s.groups.Load())
		return copy(val[:len(val)&^3], b[:]), 0
	case isFlag(name):
		if len(val) < 4 {
			return 0, linux.EINVAL
		}
		return sock.PutInt(val, int32(s.flags.Load()>>name&1)), 0
	}
	return 0, linux.ENOPROTOOPT
}

// has reports whether an option is on.
func (s *Sock) has(name int32) bool { return s.flags.Load()>>name&1 != 0 }
