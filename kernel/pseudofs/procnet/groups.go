package procnet

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"hardtack/kernel/net/inet"
)

// igmp is /proc/net/igmp. The stack sends and answers no IGMP, so there is no querier
// (NONE, as in a Linux without multicast routing), no timer, and no report.
func igmp(n *inet.Net) []byte {
	var b bytes.Buffer
	b.WriteString("Idx\tDevice    : Count Querier\tGroup    Users Timer\tReporter\n")
	for _, i := range n.Interfaces() {
		groups := n.Groups(i, false)
		if len(groups) == 0 {
			continue
		}
		fmt.Fprintf(&b, "%d\t%-10s: %5d %7s\n", i.Index, i.Name, len(groups), "NONE")
		for _, g := range groups {
			fmt.Fprintf(&b, "\t\t\t\t%08X %5d %d:%08X\t\t%d\n", binary.LittleEndian.Uint32(g.Addr.AsSlice()), g.Users, 0, 0, 0)
		}
	}
	return b.Bytes()
}

// Flags of a group of IPv6.
const (
	mafLoaded   = 4 // the interface receives it
	mafNoReport = 8 // nobody is told who is in it
)

// igmp6 is /proc/net/igmp6.
func igmp6(n *inet.Net) []byte {
	const linkLocal = 2
	var b bytes.Buffer
	for _, i := range n.Interfaces() {
		for _, g := range n.Groups(i, true) {
			a, flags := g.Addr.As16(), mafLoaded
			switch {
			case a[1]&0xf < linkLocal:
				flags = mafNoReport
			case a == [16]byte{0: 0xff, 1: linkLocal, 15: 1}: // all nodes
				flags |= mafNoReport
			}
			fmt.Fprintf(&b, "%-4d %-15s %032x %5d %08X %d\n", i.Index, i.Name, a, g.Users, flags, 0)
		}
	}
	return b.Bytes()
}

// mcfilter and mcfilter6 list sources that sockets want or do not.
func mcfilter(n *inet.Net) []byte {
	var b bytes.Buffer
	b.WriteString("Idx Device        MCA        SRC    INC    EXC\n")
	sources(n, false, func(i *inet.Interface, g *inet.Group, s *inet.Source) {
		fmt.Fprintf(&b, "%3d %6.6s 0x%08x 0x%08x %6d %6d\n", i.Index, i.Name,
			binary.BigEndian.Uint32(g.Addr.AsSlice()), binary.BigEndian.Uint32(s.Addr.AsSlice()), s.Included, s.Excluded)
	})
	return b.Bytes()
}

func mcfilter6(n *inet.Net) []byte {
	var b bytes.Buffer
	b.WriteString("Idx Device                Multicast Address                   Source Address    INC    EXC\n")
	sources(n, true, func(i *inet.Interface, g *inet.Group, s *inet.Source) {
		fmt.Fprintf(&b, "%3d %6.6s %x %x %6d %6d\n", i.Index, i.Name, g.Addr.AsSlice(), s.Addr.AsSlice(), s.Included, s.Excluded)
	})
	return b.Bytes()
}

// sources calls f for each source of each group. As on Linux, the list begins at the first
// interface whose newest group has any.
func sources(n *inet.Net, six bool, f func(*inet.Interface, *inet.Group, *inet.Source)) {
	begun := false
	for _, i := range n.Interfaces() {
		groups := n.Groups(i, six)
		if begun = begun || len(groups) > 0 && len(groups[0].Sources) > 0; !begun {
			continue
		}
		for g := range groups {
			for s := range groups[g].Sources {
				f(i, &groups[g], &groups[g].Sources[s])
			}
		}
	}
}
