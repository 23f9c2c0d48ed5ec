package proc

import (
	"testing"

	"hardtack/abi/linux"
	"hardtack/kernel/fs/vfs"
)

// A thread asks again for random numbers that it cannot have looked at, and for nothing else.
func TestDrawAgain(t *testing.T) {
	old := RandomFile.Call
	defer func() { RandomFile.Call = old }()
	handlerThread(t, func(c *Thread, stack uint64) {
		fd, e := c.FDs.Add(vfs.NewFile(vfs.BaseOps{}, linux.O_RDONLY), 0, 16, false)
		if e != 0 {
			t.Fatal(e)
		}
		const at, after = 0x500000, 0x401002
		for _, x := range []struct {
			what   string
			nr     uint64
			random bool
			change func(u *Thread)
			again  bool
		}{
			{"getrandom", linux.SYS_getrandom, false, func(*Thread) {}, true},
			{"a random device", linux.SYS_read, true, func(*Thread) {}, true},
			{"another file", linux.SYS_read, false, func(*Thread) {}, false},
			{"another call", linux.SYS_write, true, func(*Thread) {}, false},
			{"a call that failed", linux.SYS_getrandom, false, func(c *Thread) { c.User.RAX = 1 + ^uint64(linux.EFAULT) }, false},
			{"a program that ran since", linux.SYS_getrandom, false, func(c *Thread) { c.User.RIP += 3 }, false},
			{"another buffer", linux.SYS_getrandom, false, func(c *Thread) { c.User.RDI++ }, false},
		} {
			RandomFile.Call = func(any) bool { return x.random }
			c.Args[0], c.Args[1], c.Args[2] = at, 32, 0
			if x.nr == linux.SYS_read {
				c.Args[0], c.Args[1], c.Args[2] = uint64(fd), at, 32
			}
			u := &c.User
			u.RAX, u.RDI, u.RSI, u.RDX = 32, c.Args[0], c.Args[1], c.Args[2]
			u.RIP, u.RCX = after, after
			c.SetCallNumber(x.nr)
			x.change(c)
			before := u.Regs
			c.drawAgain()
			if x.again {
				before.RIP, before.RAX = after-syscallInsnLen, x.nr
			}
			if u.Regs != before {
				t.Errorf("%s: RIP %#x, RAX %#x; want %#x, %#x", x.what, u.RIP, u.RAX, before.RIP, before.RAX)
			}
		}
	})
}

// A thread that is to be held on its way to user mode is, though another one of its process ends
// a timer meanwhile.
func TestHoldBesideTimers(t *testing.T) {
	handlerThread(t, func(c *Thread, stack uint64) {
		holding.on.Store(true)
		defer holding.on.Store(false)
		c.bornHeld()
		c.Proc.SetItimer(ItimerVirtual, 1e9, 0)
		c.Proc.SetItimer(ItimerVirtual, 0, 0)
		if c.User.Work.Load()&workTimer == 0 {
			t.Error("it would not look whether it may enter user mode")
		}
	})
}
