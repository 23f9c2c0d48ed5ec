package netlink

import (
	"encoding/binary"
	"slices"
	"strings"
	"sync"

	"hardtack/abi/linux"
	"hardtack/kernel/net/inet"
)

// Rules of routing. There are routes in the tables local and main only, which are looked
// at in this order; a rule that names another table finds nothing there and passes on.
// So rules are kept and shown, and those that would change a packet's way are refused.

// rule is one of them; immutable.
type rule struct {
	family        byte
	dst, src, tos byte // lengths of the prefixes, and the TOS
	action, proto byte
	flags         uint32
	table, pref   uint32
	suppress      uint32            // FRA_SUPPRESS_PREFIXLEN
	more          map[uint16]string // other attributes
}

// rules are all, by priority for each family.
var rules = struct {
	mu   sync.Mutex
	list map[byte][]*rule // guarded by mu
}{list: map[byte][]*rule{
	linux.AF_INET:  {firstRule(linux.AF_INET, linux.RT_TABLE_LOCAL, 0), firstRule(linux.AF_INET, linux.RT_TABLE_MAIN, 0x7ffe), firstRule(linux.AF_INET, linux.RT_TABLE_DEFAULT, 0x7fff)},
	linux.AF_INET6: {firstRule(linux.AF_INET6, linux.RT_TABLE_LOCAL, 0), firstRule(linux.AF_INET6, linux.RT_TABLE_MAIN, 0x7ffe)},
}}

// noSuppress is FRA_SUPPRESS_PREFIXLEN's and FRA_SUPPRESS_IFGROUP's "none".
const noSuppress = ^uint32(0)

// maxRules bounds the rules of a family.
const maxRules = 4096

func firstRule(family byte, table, pref uint32) *rule {
	return &rule{family: family, action: linux.FR_ACT_TO_TBL, proto: linux.RTPROT_KERNEL, table: table, pref: pref, suppress: noSuppress}
}

// ruleAttrs are the attributes that a rule keeps as they come, in the order in which they
// are shown, with their lengths; 0 for a name or an address.
var ruleAttrs = [...]struct {
	typ    uint16
	length int
}{
	{linux.FRA_IIFNAME, 0}, {linux.FRA_OIFNAME, 0}, {linux.FRA_FWMARK, 4}, {linux.FRA_FWMASK, 4}, {linux.FRA_TUN_ID, 8},
	{linux.FRA_UID_RANGE, 8}, {linux.FRA_SPORT_RANGE, 4}, {linux.FRA_DPORT_RANGE, 4}, {linux.FRA_IP_PROTO, 1},
	{linux.FRA_SUPPRESS_IFGROUP, 4}, {linux.FRA_DST, 0}, {linux.FRA_SRC, 0}, {linux.FRA_FLOW, 4},
}

// parseRule decodes a request; chosen says that it names a priority.
func parseRule(body []byte) (r *rule, chosen bool, e linux.Errno) {
	if len(body) < linux.SizeofFibRuleHdr {
		return nil, false, linux.EINVAL
	}
	r = &rule{family: body[0], dst: body[1], src: body[2], tos: body[3], table: uint32(body[4]), action: body[7],
		flags: binary.LittleEndian.Uint32(body[8:]), suppress: noSuppress, more: map[uint16]string{}}
	size := 4
	switch r.family {
	case linux.AF_INET:
	case linux.AF_INET6:
		size = 16
	default:
		return nil, false, linux.EAFNOSUPPORT
	}
	at := parseAttributes(body[linux.SizeofFibRuleHdr:])
	for _, x := range []struct {
		typ    uint16
		prefix byte
	}{{linux.FRA_SRC, r.src}, {linux.FRA_DST, r.dst}} {
		if x.prefix != 0 && (len(at[x.typ]) != size || int(x.prefix) > 8*size) {
			return nil, false, linux.EINVAL
		}
		if x.prefix == 0 {
			delete(at, x.typ)
		}
	}
	for _, x := range ruleAttrs {
		b, ok := at[x.typ]
		switch {
		case !ok:
			continue
		case len(b) < x.length:
			return nil, false, linux.ERANGE
		case x.length != 0:
			b = b[:x.length]
		}
		if r.more[x.typ] = string(b); x.typ == linux.FRA_IIFNAME || x.typ == linux.FRA_OIFNAME {
			r.more[x.typ] = strings.TrimRight(string(b), "\x00") + "\x00"
		}
	}
	if t := at.u32(linux.FRA_TABLE); t != 0 {
		r.table = t
	}
	if _, ok := at[linux.FRA_SUPPRESS_PREFIXLEN]; ok {
		r.suppress = at.u32(linux.FRA_SUPPRESS_PREFIXLEN)
	}
	if b := at[linux.FRA_PROTOCOL]; len(b) > 0 {
		r.proto = b[0]
	}
	if at.u32(linux.FRA_FWMARK) != 0 && r.more[linux.FRA_FWMASK] == "" {
		r.more[linux.FRA_FWMASK] = "\xff\xff\xff\xff"
	}
	_, jump := at[linux.FRA_GOTO]
	_, l3 := at[linux.FRA_L3MDEV]
	if jump && r.action != linux.FR_ACT_GOTO {
		return nil, false, linux.EINVAL
	}
	if jump || l3 {
		return nil, false, linux.EOPNOTSUPP
	}
	_, chosen = at[linux.FRA_PRIORITY]
	r.pref = at.u32(linux.FRA_PRIORITY)
	return r, chosen, 0
}

// harmless reports whether a rule changes the way of no packet.
func (r *rule) harmless() bool {
	return r.action == linux.FR_ACT_TO_TBL || r.action == linux.FR_ACT_NOP
}

// changeRule is RTM_NEWRULE and RTM_DELRULE.
func (w *builder) changeRule(typ, flags uint16, body []byte) linux.Errno {
	r, chosen, e := parseRule(body)
	if e != 0 {
		return e
	}
	rules.mu.Lock()
	if typ == linux.RTM_NEWRULE {
		e = r.add(chosen, flags&linux.NLM_F_EXCL != 0)
	} else {
		r, e = r.remove(chosen)
	}
	rules.mu.Unlock()
	if e == 0 {
		w.announceRule(typ, r)
	}
	return e
}

// add puts a rule behind those of its priority; called with rules.mu held.
func (r *rule) add(chosen, exclusive bool) linux.Errno {
	list := rules.list[r.family]
	if !chosen && len(list) > 1 && list[1].pref != 0 {
		r.pref = list[1].pref - 1
	}
	same := func(x *rule) bool {
		return x.pref == r.pref && x.sameTarget(r) && x.dst == r.dst && x.src == r.src && x.tos == r.tos && x.suppress == r.suppress && x.hasAll(r) && len(x.more) == len(r.more)
	}
	switch {
	case exclusive && slices.ContainsFunc(list, same):
		return linux.EEXIST
	case r.tos&3 != 0, r.table == 0 && r.action == linux.FR_ACT_TO_TBL && r.family == linux.AF_INET6:
		return linux.EINVAL
	case !r.harmless():
		return linux.EOPNOTSUPP
	case len(list) >= maxRules:
		return linux.ENOBUFS
	}
	if r.table == 0 && r.action == linux.FR_ACT_TO_TBL { // the first that nobody names
		for r.table = 1; slices.ContainsFunc(list, func(x *rule) bool { return x.table == r.table }); {
			r.table++
		}
	}
	at := slices.IndexFunc(list, func(x *rule) bool { return x.pref > r.pref })
	if at < 0 {
		at = len(list)
	}
	rules.list[r.family] = slices.Insert(slices.Clone(list), at, r)
	return 0
}

// sameTarget reports whether two rules name one action and table.
func (r *rule) sameTarget(x *rule) bool { return r.action == x.action && r.table == x.table }

// hasAll reports whether r has the attributes of x.
func (r *rule) hasAll(x *rule) bool {
	for typ, v := range x.more {
		if r.more[typ] != v {
			return false
		}
	}
	return true
}

// remove takes the first rule away that is as r says; called with rules.mu held.
func (r *rule) remove(chosen bool) (*rule, linux.Errno) {
	list := rules.list[r.family]
	at := slices.IndexFunc(list, func(x *rule) bool {
		return (r.action == 0 || x.action == r.action) && (r.table == 0 || x.table == r.table) && (!chosen || x.pref == r.pref) &&
			(r.proto == 0 || x.proto == r.proto) && (r.suppress == noSuppress || x.suppress == r.suppress) &&
			(r.dst == 0 || x.dst == r.dst) && (r.src == 0 || x.src == r.src) && (r.tos == 0 || x.tos == r.tos) && x.hasAll(r)
	})
	if at < 0 {
		return nil, linux.ENOENT
	}
	gone := list[at]
	if gone.proto == linux.RTPROT_KERNEL && gone.table != linux.RT_TABLE_DEFAULT && gone.more == nil {
		return nil, linux.EOPNOTSUPP // the tables local and main are always looked at
	}
	rules.list[r.family] = slices.Delete(slices.Clone(list), at, at+1)
	return gone, 0
}

// dumpRules lists the rules of a family, or of all with 0.
func (w *builder) dumpRules(family byte) linux.Errno {
	if family != 0 && rules.list[family] == nil {
		return linux.EAFNOSUPPORT
	}
	for _, f := range []byte{linux.AF_INET, linux.AF_INET6} {
		if family != 0 && family != f {
			continue
		}
		rules.mu.Lock()
		list := rules.list[f]
		rules.mu.Unlock()
		for _, r := range list {
			w.rule(linux.RTM_NEWRULE, r)
		}
	}
	return 0
}

// rule writes the message about one.
func (w *builder) rule(typ uint16, r *rule) {
	table := byte(linux.RT_TABLE_COMPAT)
	if r.table < 256 {
		table = byte(r.table)
	}
	w.begin(typ)
	w.b = append(w.b, r.family, r.dst, r.src, r.tos, table, 0, 0, r.action)
	w.u32(r.flags | w.detached(r))
	w.attrU32(linux.FRA_TABLE, r.table)
	w.attrU32(linux.FRA_SUPPRESS_PREFIXLEN, r.suppress)
	w.attr(linux.FRA_PROTOCOL, []byte{r.proto})
	for _, x := range ruleAttrs {
		if x.typ == linux.FRA_FWMARK && r.pref != 0 {
			w.attrU32(linux.FRA_PRIORITY, r.pref)
		}
		if v, ok := r.more[x.typ]; ok {
			w.attr(x.typ, []byte(v))
		}
	}
	w.end()
}

// detached says which interface of a rule is not there.
func (w *builder) detached(r *rule) (flags uint32) {
	for _, x := range []struct {
		typ  uint16
		flag uint32
	}{{linux.FRA_IIFNAME, linux.FIB_RULE_IIF_DETACHED}, {linux.FRA_OIFNAME, linux.FIB_RULE_OIF_DETACHED}} {
		name, ok := r.more[x.typ]
		if ok && !slices.ContainsFunc(w.net.Interfaces(), func(i *inet.Interface) bool { return name == i.Name+"\x00" }) {
			flags |= x.flag
		}
	}
	return flags
}

// announceRule tells the members of the group.
func (w *builder) announceRule(typ uint16, r *rule) {
	group := linux.RTNLGRP_IPV4_RULE
	if r.family == linux.AF_INET6 {
		group = linux.RTNLGRP_IPV6_RULE
	}
	x := &builder{net: w.net, seq: w.seq, port: w.s.port.Load()}
	x.rule(typ, r)
	x.multicast(members(linux.NETLINK_ROUTE, group))
}
