package ipc

import "testing"

// pair makes an endpoint, a server that waits on it and a client, all on a core,
// and lets the client run.
func pair(tb testing.TB, n *Nucleus, core uint32) (ep ID, client, server uint32) {
	tb.Helper()
	ep, _ = n.NewEndpoint(core)
	s, _ := n.NewThread(core, core)
	c, err := n.NewThread(core, core)
	if err != 0 {
		tb.Fatal(err)
	}
	n.Start(core, s)
	if fx := n.Recv(core, ep, Forever); fx.Run != 0 {
		tb.Fatal("the server does not wait")
	}
	if fx, _ := n.Start(core, c); fx.Run != c.index() {
		tb.Fatal("the client does not run")
	}
	return ep, c.index(), s.index()
}

func newNucleus(tb testing.TB, cores int) *Nucleus {
	tb.Helper()
	n := new(Nucleus)
	if err := n.Init(cores); err != nil {
		tb.Skip(err)
	}
	return n
}

func BenchmarkPingPong(b *testing.B) {
	n := newNucleus(b, 1)
	ep, client, server := pair(b, n, 0)
	info := MakeInfo(32, 0)
	b.ReportAllocs()
	for b.Loop() {
		if fx := n.Call(0, ep, 7, info, Forever); fx.Run != server {
			b.Fatal("call")
		}
		if fx := n.ReplyRecv(0, n.Result(server).Token, info, ep, Forever); fx.Run != client {
			b.Fatal("reply")
		}
	}
}
