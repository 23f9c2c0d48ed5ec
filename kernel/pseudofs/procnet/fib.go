package procnet

import (
	"bytes"
	"fmt"
	"math/bits"

	"hardtack/abi/linux"
	"hardtack/kernel/net/inet"
	"hardtack/kernel/net/netlink"
)

// fib_trie and fib_triestat show Linux's table of routes of IPv4, a trie whose nodes have as
// many children as are well filled. netstack's is a list, so the trie is made for the reader.

// fibNode is a node, with children for the bits from pos to pos+bits-1, or a leaf.
type fibNode struct {
	key       uint32
	pos, bits int
	children  []*fibNode // nil of a leaf, and where there is none
	routes    []netlink.Route4
}

// How full a node must be of which there are twice as many children: percents.
const fullRoot, fullInner = 30, 50

// newFib makes the trie of routes that are sorted by key; nil of none.
func newFib(list []netlink.Route4, least int) *fibNode {
	if len(list) == 0 {
		return nil
	}
	first, last := list[0].Key, list[len(list)-1].Key
	if first == last {
		return &fibNode{key: first, routes: list}
	}
	n := &fibNode{pos: 31 - bits.LeadingZeros32(first^last), bits: 1}
	for n.pos > 0 && groups(list, n.pos-1)*100 >= least<<(n.bits+1) {
		n.pos, n.bits = n.pos-1, n.bits+1
	}
	n.key = first >> (n.pos + n.bits) << (n.pos + n.bits)
	n.children = make([]*fibNode, 1<<n.bits)
	for len(list) > 0 {
		k := 1
		for k < len(list) && list[k].Key>>n.pos == list[0].Key>>n.pos {
			k++
		}
		n.children[list[0].Key>>n.pos&(1<<n.bits-1)] = newFib(list[:k], fullInner)
		list = list[k:]
	}
	return n
}

// groups counts the values of the bits from pos on.
func groups(list []netlink.Route4, pos int) int {
	n := 1
	for i := 1; i < len(list); i++ {
		if list[i].Key>>pos != list[i-1].Key>>pos {
			n++
		}
	}
	return n
}

// count returns how many children there are not, and how many are nodes that follow directly.
func (n *fibNode) count() (empty, full int) {
	for _, c := range n.children {
		switch {
		case c == nil:
			empty++
		case c.children != nil && c.pos+c.bits == n.pos:
			full++
		}
	}
	return empty, full
}

func ip4(key uint32) string {
	return fmt.Sprintf("%d.%d.%d.%d", key>>24, key>>16&0xff, key>>8&0xff, key&0xff)
}

var fibTypes = [...]string{"UNSPEC", "UNICAST", "LOCAL", "BROADCAST", "ANYCAST", "MULTICAST", "BLACKHOLE", "UNREACHABLE", "PROHIBIT", "THROW"}

func fibScope(scope byte) string {
	switch scope {
	case linux.RT_SCOPE_UNIVERSE:
		return "universe"
	case linux.RT_SCOPE_LINK:
		return "link"
	case linux.RT_SCOPE_HOST:
		return "host"
	case linux.RT_SCOPE_NOWHERE:
		return "nowhere"
	}
	return fmt.Sprintf("scope=%d", scope)
}

// show writes a node and what is below it.
func (n *fibNode) show(b *bytes.Buffer, depth int) {
	if n.children == nil {
		fmt.Fprintf(b, "%*s  |-- %s\n", 3*depth, "", ip4(n.key))
		for _, r := range n.routes {
			fmt.Fprintf(b, "%*s  /%d %s %s\n", 3*(depth+1), "", r.Prefix, fibScope(r.Scope), fibTypes[r.Type])
		}
		return
	}
	empty, full := n.count()
	fmt.Fprintf(b, "%*s  +-- %s/%d %d %d %d\n", 3*depth, "", ip4(n.key), 32-n.pos-n.bits, n.bits, full, empty)
	for _, c := range n.children {
		if c != nil {
			c.show(b, depth+1)
		}
	}
}

// fibTables are the tables, which are one.
var fibTables = [...]string{"Main", "Local"}

func fibTrie(n *inet.Net) []byte {
	var b bytes.Buffer
	root := newFib(netlink.Routes4(n), fullRoot)
	for _, name := range fibTables {
		if root != nil {
			fmt.Fprintf(&b, "%s:\n", name)
			root.show(&b, 0)
		}
	}
	return b.Bytes()
}

// fibStat is what fib_triestat counts.
type fibStat struct {
	depths, deepest, leaves, prefixes, nodes, null int
	sizes                                          [33]int
}

func (s *fibStat) add(n *fibNode, depth int) {
	if n.children == nil {
		s.leaves++
		s.prefixes += len(n.routes)
		s.depths += depth
		s.deepest = max(s.deepest, depth)
		return
	}
	s.nodes++
	s.sizes[n.bits]++
	for _, c := range n.children {
		if c == nil {
			s.null++
		} else {
			s.add(c, depth+1)
		}
	}
}

// Linux's sizes in bytes.
const fibLeafSize, fibNodeSize, fibAliasSize = 48, 40, 56

func fibTrieStat(n *inet.Net) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "Basic info: size of leaf: %d bytes, size of tnode: %d bytes.\n", fibLeafSize, fibNodeSize)
	root := newFib(netlink.Routes4(n), fullRoot)
	if root == nil {
		return b.Bytes()
	}
	var s fibStat
	s.add(root, 0)
	average := s.depths * 100 / s.leaves
	for _, name := range fibTables {
		fmt.Fprintf(&b, "%s:\n\tAver depth:     %d.%02d\n\tMax depth:      %d\n\tLeaves:         %d\n\tPrefixes:       %d\n\tInternal nodes: %d\n\t",
			name, average/100, average%100, s.deepest, s.leaves, s.prefixes, s.nodes)
		pointers := 0
		for i, k := range s.sizes {
			if k != 0 {
				fmt.Fprintf(&b, "  %d: %d", i, k)
				pointers += k << i
			}
		}
		size := fibLeafSize*s.leaves + fibAliasSize*s.prefixes + fibNodeSize*s.nodes + 8*pointers
		fmt.Fprintf(&b, "\n\tPointers: %d\nNull ptrs: %d\nTotal size: %d  kB\n", pointers, s.null, (size+1023)/1024)
	}
	return b.Bytes()
}
