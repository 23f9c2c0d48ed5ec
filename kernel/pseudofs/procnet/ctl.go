package procnet

import (
	"math"
	"strconv"
	"strings"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/settings"
	"hardtack/kernel/base/sysctl"
	"hardtack/kernel/net/inet"
	"hardtack/kernel/pseudofs/procfs"
)

// Reasons why a number is only kept.
const (
	noQueue   = "kept: packets go to the stack by the goroutine that receives them; there is no queue between"
	noPacing  = "kept: it tunes how Linux segments and paces what it sends, which netstack does by its own rules"
	noTFO     = "kept: there is no TCP Fast Open; connections are made as with a peer that does not support it"
	noMemory  = "kept: the memory of all sockets is bounded by the machine's (docs/decisions/0089-pools-that-users-share.md)"
	noRouting = "kept: it tunes tables that netstack does not have"
)

// net returns the machine's network; the files are read and written after Init.
func net() *inet.Net { return inet.Default }

// oneOf makes the effect of a setting of the stack: it is stored once the stack took it.
func onNet(name string, lo, hi int64, s *settings.Setting, apply func(n *inet.Net, v int64) linux.Errno) sysctl.File {
	return sysctl.Hook(name, lo, hi, s.Get, func(_ *caller.Ctx, v int64) linux.Errno {
		n := net()
		if n == nil {
			return linux.EINVAL
		}
		if e := apply(n, v); e != 0 {
			return e
		}
		s.Set(v)
		return 0
	})
}

func setting(v int64) *settings.Setting {
	s := new(settings.Setting)
	s.Set(v)
	return s
}

func noted(f sysctl.File, note string) sysctl.File {
	f.Note = note
	return f
}

func addSettings() {
	for _, files := range []func() []sysctl.File{coreFiles, ipFiles, tcpFiles, keptFiles} {
		sysctl.Later("net", files)
	}
	for _, family := range []string{"ipv4", "ipv6"} {
		sysctl.Later("net/"+family+"/neigh/default", func() []sysctl.File { return neighbourFiles(family) })
	}
	addConf("all", -1, func(n *inet.Net) *inet.InterfaceSettings { return &n.AllInterfaces })
	addConf("default", 0, func(n *inet.Net) *inet.InterfaceSettings { return &n.NewInterfaces })
}

// AddInterface adds the settings of an interface.
func AddInterface(n *inet.Net, i *inet.Interface) {
	procfs.Register("net/dev_snmp6/"+i.Name, func() []byte { return deviceSnmp6(n, i.Index) })
	addConf(i.Name, i.Index, func(*inet.Net) *inet.InterfaceSettings { return &i.Settings })
}

// buffers makes a size of net.core, of which netstack is told.
func buffers(name string, s *settings.Setting, least int64) sysctl.File {
	return sysctl.Hook("net/core/"+name, least, math.MaxInt32/2, s.Get, func(_ *caller.Ctx, v int64) linux.Errno {
		s.Set(v)
		if n := net(); n != nil {
			n.TuneBuffers()
		}
		return 0
	})
}

func coreFiles() []sysctl.File {
	const most = sysctl.MaxInt
	kept := sysctl.Kept
	return []sysctl.File{
		sysctl.Int("net/core/somaxconn", &settings.Somaxconn, 0, most),
		buffers("rmem_default", &settings.RmemDefault, linux.MinimumReceiveBuffer),
		buffers("rmem_max", &settings.RmemMax, linux.MinimumReceiveBuffer),
		buffers("wmem_default", &settings.WmemDefault, linux.MinimumSendBuffer),
		buffers("wmem_max", &settings.WmemMax, linux.MinimumSendBuffer),
		sysctl.Int("net/core/optmem_max", &settings.OptmemMax, 0, most),
		sysctl.Int("net/unix/max_dgram_qlen", &settings.UnixDgramQlen, sysctl.MinInt, most),
		kept("net/core/netdev_max_backlog", 1000, sysctl.MinInt, most, noQueue),
		kept("net/core/netdev_budget", 300, sysctl.MinInt, most, noQueue),
		kept("net/core/netdev_budget_usecs", 2000, 0, most, noQueue),
		kept("net/core/dev_weight", 64, 1, most, noQueue),
		kept("net/core/rps_sock_flow_entries", 0, 0, 1<<29, noQueue),
		kept("net/core/busy_poll", 0, 0, most, noQueue),
		kept("net/core/busy_read", 0, 0, most, noQueue),
		kept("net/core/message_cost", 5, 0, most, "kept: the kernel has no such message"),
		kept("net/core/message_burst", 10, sysctl.MinInt, most, "kept: the kernel has no such message"),
		noted(sysctl.Text("net/core/default_qdisc", 15, func() string { return "noqueue" }, func(_ *caller.Ctx, s string) linux.Errno {
			if s != "noqueue" {
				return linux.ENOENT
			}
			return 0
		}), "always noqueue: interfaces have no queue of their own"),
	}
}

func ipFiles() []sysctl.File {
	const most = sysctl.MaxInt
	return []sysctl.File{
		sysctl.IntsWhole("net/ipv4/ip_local_port_range", 2, 0, 65535, func(v []int64) {
			v[0], v[1] = 32768, 60999
			if n := net(); n != nil {
				v[0], v[1] = n.PortRange()
			}
		}, func(_ *caller.Ctx, v []int64) linux.Errno {
			if v[0] > v[1] || v[0] < settings.UnprivilegedPorts.Get() && v[0] < 1 {
				return linux.EINVAL
			}
			return net().SetPortRange(v[0], v[1])
		}),
		noted(reservedPorts(), "obeyed by bind and by connections within the machine; netstack chooses the port of connections to others"),
		sysctl.Hook("net/ipv4/ip_unprivileged_port_start", 0, 65535, settings.UnprivilegedPorts.Get, func(_ *caller.Ctx, v int64) linux.Errno {
			if first, _ := net().PortRange(); v > first {
				return linux.EINVAL // the two ranges must not overlap
			}
			settings.UnprivilegedPorts.Set(v)
			return 0
		}),
		sysctl.Hook("net/ipv4/ip_default_ttl", 1, 255, settings.DefaultTTL.Get, func(_ *caller.Ctx, v int64) linux.Errno { return net().SetDefaultTTL(v) }),
		forwarding("net/ipv4/ip_forward", -1, false),
		sysctl.Int("net/ipv4/igmp_max_msf", &inet.MaxSources4, sysctl.MinInt, most),
		sysctl.Int("net/ipv6/mld_max_msf", &inet.MaxSources6, sysctl.MinInt, most),
		sysctl.IntsWhole("net/ipv4/ping_group_range", 2, sysctl.MinInt, most, func(v []int64) {
			v[0], v[1] = settings.PingGroupLo.Get(), settings.PingGroupHi.Get()
		}, func(_ *caller.Ctx, v []int64) linux.Errno {
			if v[0] < 0 || v[1] < 0 {
				return linux.EINVAL
			}
			if v[1] < v[0] {
				v[0], v[1] = 1, 0
			}
			settings.PingGroupLo.Set(v[0])
			settings.PingGroupHi.Set(v[1])
			return 0
		}),
		onFilter("net/ipv4/icmp_echo_ignore_all", 0, func(f *inet.Filter) *settings.Setting { return &f.IgnoreEcho }),
		onFilter("net/ipv4/icmp_echo_ignore_broadcasts", 1, func(f *inet.Filter) *settings.Setting { return &f.IgnoreBroadcast }),
		onFilter("net/ipv6/icmp/echo_ignore_all", 0, func(f *inet.Filter) *settings.Setting { return &f.IgnoreEcho6 }),
		sysctl.Int("net/ipv6/bindv6only", &settings.BindV6Only, 0, 1),
		sysctl.Int("net/ipv4/ip_nonlocal_bind", &inet.NonlocalBind4, 0, 255),
		sysctl.Int("net/ipv6/ip_nonlocal_bind", &inet.NonlocalBind6, 0, 255),
	}
}

func onFilter(name string, otherwise int64, pick func(*inet.Filter) *settings.Setting) sysctl.File {
	return sysctl.Hook(name, 0, 1, func() int64 {
		if n := net(); n != nil {
			return pick(&n.Filter).Get()
		}
		return otherwise
	}, func(_ *caller.Ctx, v int64) linux.Errno {
		pick(&net().Filter).Set(v)
		return 0
	})
}

func forwarding(name string, index int32, v6 bool) sysctl.File {
	return sysctl.Hook(name, sysctl.MinInt, sysctl.MaxInt, func() int64 {
		if n := net(); n != nil && n.Forwarding(index, v6) {
			return 1
		}
		return 0
	}, func(_ *caller.Ctx, v int64) linux.Errno { return net().SetForwarding(index, v6, v != 0) })
}

// reservedPorts is a list of ports and ranges.
func reservedPorts() sysctl.File {
	return sysctl.Text("net/ipv4/ip_local_reserved_ports", 4096, func() string {
		if net() == nil {
			return ""
		}
		ports := net().ReservedPorts()
		var list []string
		for p := 0; p < 1<<16; p++ {
			from := p
			for p < 1<<16 && ports[p/64]>>(p%64)&1 != 0 {
				p++
			}
			switch {
			case p-from == 1:
				list = append(list, strconv.Itoa(from))
			case p > from:
				list = append(list, strconv.Itoa(from)+"-"+strconv.Itoa(p-1))
			}
		}
		return strings.Join(list, ",")
	}, func(_ *caller.Ctx, s string) linux.Errno {
		var ports [1 << 16 / 64]uint64
		for part := range strings.SplitSeq(strings.TrimSpace(s), ",") {
			if part == "" {
				continue
			}
			lo, hi, ranged := strings.Cut(part, "-")
			if !ranged {
				hi = lo
			}
			a, err1 := strconv.ParseUint(lo, 10, 16)
			b, err2 := strconv.ParseUint(hi, 10, 16)
			if err1 != nil || err2 != nil || a > b {
				return linux.EINVAL
			}
			for p := a; p <= b; p++ {
				ports[p/64] |= 1 << (p % 64)
			}
		}
		net().SetReservedPorts(ports)
		return 0
	})
}

func tcpFiles() []sysctl.File {
	seconds := func(v int64) time.Duration { return time.Duration(v) * time.Second }
	return []sysctl.File{
		sysctl.Int("net/ipv4/tcp_keepalive_time", &settings.KeepTime, 1, math.MaxInt32/1000),
		sysctl.Int("net/ipv4/tcp_keepalive_intvl", &settings.KeepInterval, 1, math.MaxInt32/1000),
		sysctl.Int("net/ipv4/tcp_keepalive_probes", &settings.KeepProbes, 1, 255),
		onNet("net/ipv4/tcp_fin_timeout", 0, math.MaxInt32/1000, &settings.FinTimeout, func(n *inet.Net, v int64) linux.Errno {
			o := tcpip.TCPLingerTimeoutOption(seconds(v))
			return n.SetTCP(&o)
		}),
		onNet("net/ipv4/tcp_syn_retries", 1, 127, &settings.SynRetries, func(n *inet.Net, v int64) linux.Errno {
			o := tcpip.TCPSynRetriesOption(v)
			return n.SetTCP(&o)
		}),
		onNet("net/ipv4/tcp_retries2", 0, 255, setting(15), func(n *inet.Net, v int64) linux.Errno {
			o := tcpip.TCPMaxRetriesOption(v)
			return n.SetTCP(&o)
		}),
		onNet("net/ipv4/tcp_invalid_ratelimit", 0, math.MaxInt32, setting(500), func(n *inet.Net, v int64) linux.Errno {
			return n.SetInvalidLimit(time.Duration(v) * time.Millisecond)
		}),
		onNet("net/ipv4/tcp_sack", 0, 255, setting(1), func(n *inet.Net, v int64) linux.Errno {
			o := tcpip.TCPSACKEnabled(v != 0)
			return n.SetTCP(&o)
		}),
		onNet("net/ipv4/tcp_moderate_rcvbuf", 0, 255, setting(1), func(n *inet.Net, v int64) linux.Errno {
			o := tcpip.TCPModerateReceiveBufferOption(v != 0)
			return n.SetTCP(&o)
		}),
		onNet("net/ipv4/tcp_tw_reuse", 0, 2, setting(2), func(n *inet.Net, v int64) linux.Errno {
			o := tcpip.TCPTimeWaitReuseOption(v)
			return n.SetTCP(&o)
		}),
		onNet("net/ipv4/tcp_recovery", 0, 255, setting(1), func(n *inet.Net, v int64) linux.Errno {
			o := tcpip.TCPRecovery(v)
			return n.SetTCP(&o)
		}),
		noted(onNet("net/ipv4/tcp_syncookies", 1, 2, setting(1), func(n *inet.Net, v int64) linux.Errno {
			o := tcpip.TCPAlwaysUseSynCookies(v == 2)
			return n.SetTCP(&o)
		}), "not 0: a full queue of connections being made always falls back on cookies"),
		sizes("tcp_rmem", linux.MinimumReceiveBuffer, func(n *inet.Net, v []int64) linux.Errno {
			return n.SetTCP(&tcpip.TCPReceiveBufferSizeRangeOption{Min: int(v[0]), Default: int(v[1]), Max: int(v[2])})
		}, func(n *inet.Net, v []int64) {
			var o tcpip.TCPReceiveBufferSizeRangeOption
			n.GetTCP(&o)
			v[0], v[1], v[2] = int64(o.Min), int64(o.Default), int64(o.Max)
		}),
		sizes("tcp_wmem", 1, func(n *inet.Net, v []int64) linux.Errno {
			return n.SetTCP(&tcpip.TCPSendBufferSizeRangeOption{Min: int(v[0]), Default: int(v[1]), Max: int(v[2])})
		}, func(n *inet.Net, v []int64) {
			var o tcpip.TCPSendBufferSizeRangeOption
			n.GetTCP(&o)
			v[0], v[1], v[2] = int64(o.Min), int64(o.Default), int64(o.Max)
		}),
		sysctl.Text("net/ipv4/tcp_congestion_control", 15, inet.Congestion, func(_ *caller.Ctx, s string) linux.Errno { return inet.SetCongestion(s) }),
		sysctl.Line("net/ipv4/tcp_available_congestion_control", func() string { return "reno cubic" }),
		noted(sysctl.Text("net/ipv4/tcp_allowed_congestion_control", 128, func() string { return "reno cubic" }, func(_ *caller.Ctx, s string) linux.Errno {
			for _, name := range strings.Fields(s) {
				if name != "reno" && name != "cubic" {
					return linux.ENOENT
				}
			}
			return 0
		}), "always both"),
		sysctl.Fixed("net/ipv4/tcp_timestamps", 1, "always 1: netstack uses what the peer offers"),
		sysctl.Fixed("net/ipv4/tcp_window_scaling", 1, "always 1: netstack uses what the peer offers"),
	}
}

// sizes is the least, the first and the greatest size of a buffer.
func sizes(name string, least int64, apply func(*inet.Net, []int64) linux.Errno, get func(*inet.Net, []int64)) sysctl.File {
	return noted(sysctl.IntsWhole("net/ipv4/"+name, 3, least, sysctl.MaxInt, func(v []int64) {
		if n := net(); n != nil {
			get(n, v)
		}
	}, func(_ *caller.Ctx, v []int64) linux.Errno { return apply(net(), v) }), "the three must be in order; of connections to other machines")
}
