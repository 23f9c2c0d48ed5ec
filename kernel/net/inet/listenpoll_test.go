package inet_test

import (
	"sync"
	"testing"

	"hardtack/abi/linux"
	. "hardtack/kernel/net/socktest"
)

// A thread may poll a socket, or accept from it, while another one has it listen.
func TestPollWhileListening(tt *testing.T) {
	t := New(tt)
	for range 3000 {
		l := t.Socket(linux.AF_INET, linux.SOCK_STREAM, 0)
		t.OK(S(l).Bind(t.C, l, nil, In4(0, 0, 0, 0, 0)), "bind")
		NonBlock(l)
		stop := make(chan struct{})
		var others sync.WaitGroup
		for _, look := range []func(){
			func() { S(l).Ready(l) },
			func() { S(l).Accept(t.C, true, 0) },
		} {
			others.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
						look()
					}
				}
			})
		}
		t.OK(S(l).Listen(t.C, 5), "listen")
		close(stop)
		others.Wait()
		l.Put()
	}
}
