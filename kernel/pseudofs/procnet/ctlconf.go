package procnet

import (
	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/sysctl"
	"hardtack/kernel/net/inet"
)

// addConf shows net.ipv4.conf.NAME and net.ipv6.conf.NAME; index -1 is all, 0 the
// default of new interfaces.
func addConf(name string, index int32, of func(*inet.Net) *inet.InterfaceSettings) {
	at4, at6 := "net/ipv4/conf/"+name, "net/ipv6/conf/"+name
	sysctl.Later(at4, func() []sysctl.File { return conf4(at4+"/", index, of) })
	sysctl.Later(at6, func() []sysctl.File { return conf6(at6+"/", index) })
}

// conf4 are the files of net.ipv4.conf.NAME.
func conf4(at string, index int32, of func(*inet.Net) *inet.InterfaceSettings) []sysctl.File {
	with := func(f func(n *inet.Net, s *inet.InterfaceSettings) int64) func() int64 {
		return func() int64 {
			if n := net(); n != nil {
				return f(n, of(n))
			}
			return 0
		}
	}
	files := []sysctl.File{
		forwarding(at+"forwarding", index, false),
		sysctl.Hook(at+"rp_filter", 0, 2, with(func(_ *inet.Net, s *inet.InterfaceSettings) int64 { return s.ReversePath.Get() }),
			func(_ *caller.Ctx, v int64) linux.Errno {
				n := net()
				n.SetReversePath(of(n), v)
				return 0
			}),
		noted(sysctl.Hook(at+"log_martians", sysctl.MinInt, sysctl.MaxInt, with(func(_ *inet.Net, s *inet.InterfaceSettings) int64 { return s.LogMartians.Get() }),
			func(_ *caller.Ctx, v int64) linux.Errno {
				of(net()).LogMartians.Set(v)
				return 0
			}), "logs packets that rp_filter drops"),
		sysctl.Hook(at+"promote_secondaries", sysctl.MinInt, sysctl.MaxInt, with(func(_ *inet.Net, s *inet.InterfaceSettings) int64 { return s.PromoteSecondaries.Get() }),
			func(_ *caller.Ctx, v int64) linux.Errno {
				of(net()).PromoteSecondaries.Set(v)
				return 0
			}),
	}
	for _, x := range []struct {
		name, note string
	}{
		{"accept_redirects", "always 0: redirects are ignored"},
		{"send_redirects", "always 0: redirects are not sent"},
		{"accept_source_route", "always 0: packets with a source route are not forwarded"},
		{"proxy_arp", "always 0: only own addresses are answered for"},
		{"route_localnet", "always 0: 127.0.0.0/8 stays on lo"},
		{"accept_local", "always 0: own addresses do not come from outside"},
		{"bootp_relay", "always 0: no packets of 0.0.0.0/8 are forwarded"},
		{"bc_forwarding", "always 0: broadcasts are not forwarded"},
	} {
		files = append(files, sysctl.Fixed(at+x.name, 0, x.note))
	}
	const redirects = "kept: redirects are neither obeyed nor sent"
	const arp = "kept: netstack answers for the addresses of the interface that was asked, and announces none"
	kept := sysctl.Kept
	const any, most = sysctl.MinInt, sysctl.MaxInt
	return append(files,
		kept(at+"secure_redirects", 1, any, most, redirects), kept(at+"shared_media", 1, any, most, redirects),
		kept(at+"arp_announce", 0, any, most, arp), kept(at+"arp_filter", 0, any, most, arp),
		kept(at+"arp_ignore", 0, any, most, arp), kept(at+"arp_notify", 0, any, most, arp), kept(at+"arp_accept", 0, any, most, arp),
		kept(at+"disable_policy", 0, any, most, "kept: there is no IPsec"), kept(at+"disable_xfrm", 0, any, most, "kept: there is no IPsec"),
		kept(at+"src_valid_mark", 0, any, most, "kept: marks do not choose routes"),
		kept(at+"tag", 0, any, most, "kept, as in Linux: it is the administrator's"),
		sysctl.Number(at+"mc_forwarding", func() int64 { return 0 }),
	)
}

// conf6 are the files of net.ipv6.conf.NAME.
func conf6(at string, index int32) []sysctl.File {
	files := []sysctl.File{
		forwarding(at+"forwarding", index, true),
		sysctl.Hook(at+"disable_ipv6", sysctl.MinInt, sysctl.MaxInt, func() int64 {
			if n := net(); n != nil && n.IPv6Disabled(index) {
				return 1
			}
			return 0
		}, func(_ *caller.Ctx, v int64) linux.Errno {
			net().DisableIPv6(index, v != 0)
			return 0
		}),
	}
	for _, x := range []struct {
		name, note string
	}{
		{"accept_redirects", "always 0: redirects are ignored"},
		{"accept_source_route", "always 0: packets with a routing header are not forwarded"},
		{"use_tempaddr", "always 0: there are no temporary addresses"},
		{"proxy_ndp", "always 0: only own addresses are answered for"},
	} {
		files = append(files, sysctl.Fixed(at+x.name, 0, x.note))
	}
	const routers = "kept: of routers, prefixes and addresses ten each are taken from advertisements, without preferences; three solicitations are sent"
	for _, x := range []struct {
		name  string
		value int64
	}{{"accept_ra_defrtr", 1}, {"accept_ra_pinfo", 1}, {"accept_ra_rtr_pref", 1}, {"router_solicitations", -1}, {"max_addresses", 16}} {
		files = append(files, sysctl.Kept(at+x.name, x.value, sysctl.MinInt, sysctl.MaxInt, routers))
	}
	files = append(files, fromRouters(at, index)...)
	return append(files,
		sysctl.Fixed(at+"dad_transmits", 0, "always 0: addresses are used at once"),
		sysctl.Fixed(at+"accept_dad", 0, "always 0: addresses are used at once"),
		sysctl.Number(at+"mc_forwarding", func() int64 { return 0 }),
	)
}

// fromRouters says what counts of what routers advertise.
func fromRouters(at string, index int32) []sysctl.File {
	get := func() (accept, autoconf int64) {
		if n := net(); n != nil {
			return n.AcceptRA(index)
		}
		return 0, 1
	}
	return []sysctl.File{
		noted(sysctl.Hook(at+"accept_ra", sysctl.MinInt, sysctl.MaxInt, func() int64 { v, _ := get(); return v },
			func(_ *caller.Ctx, v int64) linux.Errno { net().SetAcceptRA(index, v); return 0 }),
			"0 at first, where Linux has 1: a timer that waits costs every context switch"),
		sysctl.Hook(at+"autoconf", sysctl.MinInt, sysctl.MaxInt, func() int64 { _, v := get(); return v },
			func(_ *caller.Ctx, v int64) linux.Errno { net().SetAutoconf(index, v); return 0 }),
	}
}

// neighbourFiles tune the table of neighbours.
func neighbourFiles(family string) (files []sysctl.File) {
	const note = "kept: netstack keeps the 512 neighbours that were used last, by the times of RFC 4861"
	for _, x := range []struct {
		name  string
		value int64
	}{{"gc_thresh1", 128}, {"gc_thresh2", 512}, {"gc_thresh3", 1024}, {"gc_interval", 30}, {"gc_stale_time", 60},
		{"base_reachable_time_ms", 30000}, {"retrans_time_ms", 1000}, {"ucast_solicit", 3}, {"mcast_solicit", 3}, {"delay_first_probe_time", 5}} {
		files = append(files, sysctl.Kept("net/"+family+"/neigh/default/"+x.name, x.value, 0, sysctl.MaxInt, note))
	}
	return files
}

// keptFiles are what server set-ups write and nothing here reads.
func keptFiles() (files []sysctl.File) {
	const any, most = sysctl.MinInt, sysctl.MaxInt
	for _, x := range []struct {
		name          string
		value, lo, hi int64
		note          string
	}{
		{"tcp_max_syn_backlog", 2048, any, most, "kept: listen's backlog bounds the connections being made"},
		{"tcp_synack_retries", 5, 0, 255, "kept: netstack repeats an answer until the time of a connection being made is over"},
		{"tcp_max_tw_buckets", 131072, any, most, "kept: connections in TIME-WAIT stay for 3 seconds only"},
		{"tcp_max_orphans", 16384, any, most, noMemory},
		{"tcp_orphan_retries", 0, 0, 255, "kept: what is closed is sent as often as what is open"},
		{"tcp_retries1", 3, 0, 255, "kept: a route is never looked up again"},
		{"tcp_abort_on_overflow", 0, 0, 0, "always 0: a connection that finds the backlog full is tried again"},
		{"tcp_fastopen", 0, any, most, noTFO},
		{"tcp_slow_start_after_idle", 1, 0, 255, noPacing},
		{"tcp_no_metrics_save", 0, 0, 255, "kept: nothing is remembered of a connection that has ended"},
		{"tcp_mtu_probing", 0, 0, 255, noPacing},
		{"tcp_base_mss", 1024, any, most, noPacing},
		{"tcp_ecn", 2, 0, 2, "kept: congestion is not marked; peers that offer it get an ordinary connection"},
		{"tcp_dsack", 1, 0, 255, noPacing},
		{"tcp_fack", 0, 0, 255, "kept, as in Linux"},
		{"tcp_low_latency", 0, any, most, "kept, as in Linux"},
		{"tcp_frto", 2, 0, 255, noPacing},
		{"tcp_early_retrans", 3, 0, 4, noPacing},
		{"tcp_reordering", 3, 1, 300, noPacing},
		{"tcp_max_reordering", 300, 1, most, noPacing},
		{"tcp_rfc1337", 0, 0, 255, "kept: a reset ends TIME-WAIT early; it lasts 3 seconds anyway"},
		{"tcp_stdurg", 0, 0, 255, noPacing},
		{"tcp_adv_win_scale", 1, -31, 31, noPacing},
		{"tcp_app_win", 31, 0, 31, noPacing},
		{"tcp_autocorking", 1, 0, 1, noPacing},
		{"tcp_limit_output_bytes", 1048576, any, most, noPacing},
		{"tcp_challenge_ack_limit", most, any, most, noPacing},
		{"tcp_min_tso_segs", 2, 1, 255, noPacing},
		{"tcp_tso_win_divisor", 3, 0, 255, noPacing},
		{"tcp_thin_linear_timeouts", 0, 0, 255, noPacing},
		{"tcp_retrans_collapse", 1, 0, 255, noPacing},
		{"tcp_workaround_signed_windows", 0, 0, 255, noPacing},
		{"udp_rmem_min", 4096, 1, most, noMemory},
		{"udp_wmem_min", 4096, 1, most, noMemory},
		{"ipfrag_high_thresh", 4194304, 0, most, "kept: netstack keeps 4 MiB of fragments"},
		{"ipfrag_low_thresh", 3145728, 0, most, "kept: netstack keeps 4 MiB of fragments"},
		{"ipfrag_time", 30, 0, most, "kept: fragments are kept for 30 seconds"},
		{"icmp_ignore_bogus_error_responses", 1, 0, 1, "kept: the kernel has no such message"},
		{"icmp_ratelimit", 1000, 0, most, "kept: at most 1000 ICMP messages are sent per second"},
		{"icmp_ratemask", 6168, any, most, "kept: at most 1000 ICMP messages are sent per second"},
		{"icmp_msgs_per_sec", 1000, 0, most, "kept: at most 1000 ICMP messages are sent per second"},
		{"icmp_msgs_burst", 50, 0, most, "kept: at most 1000 ICMP messages are sent per second"},
		{"igmp_max_memberships", 20, any, most, noRouting},
		{"ip_no_pmtu_disc", 0, 0, 255, noRouting},
		{"ip_forward_use_pmtu", 0, 0, 255, noRouting},
		{"ip_dynaddr", 0, 0, 255, noRouting},
		{"ip_early_demux", 1, 0, 255, noRouting},
		{"fib_multipath_hash_policy", 0, 0, 3, noRouting},
		{"route/max_size", most, any, most, "kept, as in Linux"},
		{"route/gc_timeout", 300, any, most, noRouting},
	} {
		files = append(files, sysctl.Kept("net/ipv4/"+x.name, x.value, x.lo, x.hi, x.note))
	}
	notSent := setting(1<<32 - 1)
	return append(files,
		noted(sysctl.Uint("net/ipv4/tcp_notsent_lowat", notSent, 0, 1<<32-1), noPacing),
		sysctl.KeptInts("net/ipv4/tcp_mem", 0, most, noMemory, 18000, 24000, 36000),
		sysctl.KeptInts("net/ipv4/udp_mem", 0, most, noMemory, 36000, 48000, 72000),
		sysctl.Kept("net/ipv6/route/max_size", most, any, most, "kept, as in Linux"),
		sysctl.Trigger("net/ipv4/route/flush", any, most, func(int64) linux.Errno { return 0 }),
		sysctl.Trigger("net/ipv6/route/flush", any, most, func(int64) linux.Errno { return 0 }),
	)
}
