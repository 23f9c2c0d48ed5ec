package monitor

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"hardtack/idl/monitor"
)

// talk opens channels from and to kernel 1, writes, rings, closes and gives rings back. Whatever fails
// because a kernel has ended, all of it returns.
func talk(t *testing.T, ms []*Monitor) {
	var all sync.WaitGroup
	for i, w := range ways {
		name := string(rune('a' + i))
		came := make(chan struct{}, 1)
		l, err := ms[w[1]].Listen(name, monitor.Who{}, func() {
			select {
			case came <- struct{}{}:
			default:
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		opened := make(chan struct{})
		all.Go(func() {
			defer close(opened)
			if c, err := ms[w[0]].Open(w[1], name, monitor.Who{}, 1); err == nil {
				use(t, c)
			}
		})
		all.Go(func() {
			defer l.Close()
			select {
			case <-came:
			case <-opened:
			}
			if c := l.Accept(); c != nil {
				use(t, c)
			}
		})
	}
	all.Wait()
}

// use does at one end what the other one does as well.
func use(t *testing.T, c *Channel) {
	r := c.Rings()
	c.Ring()
	b := block(c)
	b.Write(t, make([]byte, 3000))
	b.Read(t, make([]byte, 3000))
	c.TakeRung()
	c.Close()
	if r != nil {
		r.Put()
	}
}

// A kernel ends at any interrupt of a conversation, its own or another's: the others' ends hear of it,
// nobody hangs, and no frame stays lent.
func TestCutAtEveryMessage(t *testing.T) {
	for cut := int32(1); ; cut++ {
		ms, hosts, _ := machine(t, 3)
		var count atomic.Int32
		over := make(chan struct{})
		ring := func() {
			if count.Add(1) != cut {
				return
			}
			go func() {
				defer close(over)
				leave(ms[0], hosts[0].ram, 1)
				ms[1].mu.Lock()
				links := slices.Clone(ms[1].links)
				ms[1].mu.Unlock()
				ms[1].Leave(0, links...) // what it would still do, it does not
			}()
		}
		for _, h := range hosts {
			h.ringing.Store(&ring)
		}
		talk(t, ms)
		reached := count.Load() >= cut
		if reached {
			<-over
		}
		none(t, ms[0], hosts[0].ram)
		x, y := ringed(t, ms, 2, 0, 1)
		rang := onRung(y)
		x.Ring()
		<-rang
		x.Close()
		y.Close()
		none(t, ms[0], hosts[0].ram)
		if t.Failed() {
			t.Fatalf("cut at interrupt %d", cut)
		}
		if !reached {
			t.Logf("%d interrupts", cut-1)
			break
		}
	}
}
