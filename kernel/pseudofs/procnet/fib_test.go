package procnet

import (
	"bytes"
	"testing"

	"hardtack/kernel/net/netlink"
)

// The trie of Linux 6.1 with lo alone.
func TestFib(t *testing.T) {
	list := []netlink.Route4{{Key: 0x7f000000, Prefix: 8, Scope: 254, Type: 2}, {Key: 0x7f000001, Prefix: 32, Scope: 254, Type: 2},
		{Key: 0x7fffffff, Prefix: 32, Scope: 253, Type: 3}}
	const want = `  +-- 127.0.0.0/8 2 0 2
     +-- 127.0.0.0/31 1 0 0
        |-- 127.0.0.0
           /8 host LOCAL
        |-- 127.0.0.1
           /32 host LOCAL
     |-- 127.255.255.255
        /32 link BROADCAST
`
	var b bytes.Buffer
	root := newFib(list, fullRoot)
	if root.show(&b, 0); b.String() != want {
		t.Errorf("the trie is\n%swant\n%s", b.String(), want)
	}
	var s fibStat
	s.add(root, 0)
	if s.depths != 5 || s.deepest != 2 || s.leaves != 3 || s.prefixes != 3 || s.nodes != 2 || s.null != 2 || s.sizes[1] != 1 || s.sizes[2] != 1 {
		t.Errorf("it counts %+v", s)
	}
	if newFib(nil, fullRoot) != nil {
		t.Error("a trie of nothing")
	}
}
