package proc

import (
	"testing"

	"hardtack/abi/linux"
	"hardtack/kernel/base/creds"
	"hardtack/kernel/base/wait"
)

func TestProtectedInit(t *testing.T) {
	asInit(func(c *Thread) {
		pid := c.spawn(t, fork, func(c *Thread) {
			for _, sig := range []linux.Signal{linux.SIGKILL, linux.SIGTERM, linux.SIGSTOP} {
				info := UserInfo(&c.Ctx, sig, linux.SI_USER)
				Lookup(1).Signal(&info)
			}
		})
		c.waitFor(t, pid)
		if c.Killed() || c.Pending() != 0 {
			t.Error("process 1 can be killed by another")
		}
	})
}

func TestSigtimedwait(t *testing.T) {
	handlerThread(t, func(c *Thread, _ uint64) {
		set := linux.SIGUSR1.Set() | linux.SIGUSR2.Set()
		c.SetBlocked(set)
		if _, e := c.WaitSignal(set, 0, true); e != linux.EAGAIN {
			t.Error(e)
		}
		if _, e := c.WaitSignal(set, wait.Now()+1e6, false); e != linux.EAGAIN {
			t.Error("timed out:", e)
		}
		p := c.Proc
		go p.SendSignal(linux.SIGUSR2)
		info, e := c.WaitSignal(set, wait.NoDeadline, false)
		if e != 0 || info.Signal() != linux.SIGUSR2 || c.Blocked() != set || c.Interrupted() {
			t.Errorf("%v %v mask %#x", info, e, c.Blocked())
		}
		// Another signal ends it.
		p.SetAction(linux.SIGTERM, &linux.SigAction{Handler: 0x401000, Flags: handlerFlags})
		go p.SendSignal(linux.SIGTERM)
		if _, e := c.WaitSignal(set, wait.NoDeadline, false); e != linux.EINTR {
			t.Error(e)
		}
	})
}

func TestIgnoredSignalsVanish(t *testing.T) {
	handlerThread(t, func(c *Thread, _ uint64) {
		p := c.Proc
		p.SendSignal(linux.SIGCHLD)
		p.SendSignal(linux.SIGWINCH)
		if c.Pending() != 0 || c.Interrupted() {
			t.Error("a signal without effect is pending")
		}
		// A blocked one stays until the action says that it is ignored.
		c.SetBlocked(linux.SIGUSR1.Set())
		p.SendSignal(linux.SIGUSR1)
		if c.Pending() != linux.SIGUSR1.Set() {
			t.Errorf("%#x", c.Pending())
		}
		p.SetAction(linux.SIGUSR1, &linux.SigAction{Handler: linux.SIG_IGN})
		if c.Pending() != 0 {
			t.Errorf("%#x", c.Pending())
		}
	})
}

func TestForcedSignal(t *testing.T) {
	for _, ignored := range []bool{true, false} {
		asInit(func(c *Thread) {
			pid := c.spawn(t, fork, func(c *Thread) {
				if ignored {
					c.Proc.SetAction(linux.SIGSEGV, &linux.SigAction{Handler: linux.SIG_IGN})
				} else {
					c.SetBlocked(^linux.SigSet(0))
				}
				if c.call(func() {
					info := kernelInfo(linux.SIGSEGV)
					c.ForceSignal(&info)
				}) {
					t.Error("survived")
				}
			})
			if r := c.waitFor(t, pid); r.Status != int32(linux.SIGSEGV) {
				t.Errorf("%+v", r)
			}
		})
	}
}

// A process-wide signal goes to a thread that does not block it.
func TestSignalFindsThread(t *testing.T) {
	asInit(func(c *Thread) {
		pid := c.spawn(t, fork, func(c *Thread) {
			c.SetBlocked(linux.SIGUSR1.Set())
			c.Proc.SetAction(linux.SIGUSR1, &linux.SigAction{Handler: 0x401000, Flags: handlerFlags})
			woken := make(chan bool)
			tid := c.spawn(t, CloneArgs{Flags: threadFlags, Stack: 4096}, func(c *Thread) {
				c.SetBlocked(0)
				end, r := wait.Now()+60e9, wait.Woken
				for r == wait.Woken {
					c.Arm()
					r = c.Sleep(end)
				}
				woken <- r == wait.Interrupted
			})
			eventually(t, "sleep", ByTID(tid).Parked)
			c.Proc.SendSignal(linux.SIGUSR1)
			if !<-woken {
				t.Error("nobody took it")
			}
		})
		c.waitFor(t, pid)
	})
}

func TestMaySignal(t *testing.T) {
	asInit(func(c *Thread) {
		gate := make(chan bool)
		ready := make(chan bool)
		pid := c.spawn(t, fork, func(c *Thread) {
			n, _ := creds.SetRESUID(c.Cred(), 1000, 1000, 1001)
			c.ChangeCred(n)
			close(ready)
			<-gate
		})
		<-ready
		p := Lookup(pid)
		for _, x := range []struct {
			cred creds.Cred
			sig  linux.Signal
			same bool
			want bool
		}{
			{creds.Cred{UID: 1000, EUID: 5}, linux.SIGTERM, false, true},
			{creds.Cred{UID: 5, EUID: 1001}, linux.SIGTERM, false, true},
			{creds.Cred{UID: 5, EUID: 5}, linux.SIGTERM, true, false},
			{creds.Cred{UID: 5, EUID: 5}, linux.SIGCONT, true, true},
			{creds.Cred{UID: 5, EUID: 5}, linux.SIGCONT, false, false},
			{creds.Cred{UID: 5, EUID: 5, Effective: 1 << creds.CapKill}, linux.SIGTERM, false, true},
		} {
			if got := MaySignal(&x.cred, p, nil, x.sig, x.same); got != x.want {
				t.Errorf("%+v: %v", x, got)
			}
		}
		close(gate)
		c.waitFor(t, pid)
	})
}
