package proc

import (
	"testing"

	"hardtack/abi/linux"
	"hardtack/kernel/base/creds"
	"hardtack/kernel/base/wait"
)

func TestForkWaitExit(t *testing.T) {
	asInit(func(c *Thread) {
		before, _ := Counts()
		pid := c.spawn(t, fork, func(c *Thread) { c.ExitGroup(7) })
		r := c.waitFor(t, pid)
		if r.PID != pid || r.Status != 7<<8 || r.Code != linux.CLD_EXITED || r.Value != 7 {
			t.Errorf("%+v", r)
		}
		if Lookup(pid) != nil || ByTID(pid) != nil {
			t.Error("the process is still there")
		}
		if n, _ := Counts(); n != before {
			t.Errorf("%d processes, were %d", n, before)
		}
		if _, e := c.Wait(&WaitArgs{Kind: linux.P_ALL, Options: linux.WEXITED}); e != linux.ECHILD {
			t.Errorf("no child: %v", e)
		}
	})
}

func TestWaitNoHangAndNoWait(t *testing.T) {
	asInit(func(c *Thread) {
		gate := make(chan bool)
		pid := c.spawn(t, fork, func(c *Thread) { <-gate })
		r, e := c.Wait(&WaitArgs{Kind: linux.P_ALL, Options: linux.WEXITED, NoHang: true})
		if e != 0 || r.PID != 0 {
			t.Errorf("running child: %v %v", r, e)
		}
		close(gate)
		for range 2 {
			r, e = c.Wait(&WaitArgs{Kind: linux.P_PID, ID: pid, Options: linux.WEXITED | linux.WNOWAIT})
			if e != 0 || r.PID != pid {
				t.Errorf("WNOWAIT: %v %v", r, e)
			}
		}
		c.waitFor(t, pid)
		if _, e := c.Wait(&WaitArgs{Kind: linux.P_PID, ID: pid, Options: linux.WEXITED}); e != linux.ECHILD {
			t.Errorf("after it was collected: %v", e)
		}
	})
}

// A signal whose action is death ends the process with its status.
func TestKilled(t *testing.T) {
	for _, sig := range []linux.Signal{linux.SIGTERM, linux.SIGKILL, linux.SIGSEGV} {
		asInit(func(c *Thread) {
			pid := c.spawn(t, fork, func(c *Thread) {
				for c.call(func() { c.Arm(); c.Sleep(wait.NoDeadline) }) {
				}
			})
			info := UserInfo(&c.Ctx, sig, linux.SI_USER)
			Lookup(pid).Signal(&info)
			if r := c.waitFor(t, pid); r.Status != int32(sig) || r.Code != linux.CLD_KILLED {
				t.Errorf("%v: %+v", sig, r)
			}
		})
	}
}

// Orphans go to process 1, and to a subreaper before it.
func TestReparent(t *testing.T) {
	asInit(func(c *Thread) {
		gate := make(chan bool)
		pids := make(chan int32, 2)
		var middle, reaper *Process
		mid := c.spawn(t, fork, func(c *Thread) {
			reaper = c.Proc
			c.Proc.SetSubreaper(true)
			pid := c.spawn(t, fork, func(c *Thread) {
				middle = c.Proc
				pids <- c.spawn(t, fork, func(c *Thread) { <-gate })
			})
			c.waitFor(t, pid)
			orphan := <-pids
			if p := Lookup(orphan).Parent(); p != c.Proc {
				t.Errorf("orphan went to %v", p.PID)
			}
			pids <- orphan
		})
		c.waitFor(t, mid)
		orphan := <-pids
		if p := Lookup(orphan).Parent(); p != c.Proc {
			t.Errorf("orphan's parent is %d, want 1", p.PID)
		}
		close(gate)
		c.waitFor(t, orphan)
		if !middle.Zombie() || !reaper.Zombie() {
			t.Error("somebody lives")
		}
	})
}

// With SIGCHLD ignored children leave no zombies, and wait reports ECHILD when
// the last is gone.
func TestAutoReap(t *testing.T) {
	asInit(func(c *Thread) {
		old := c.Proc.SetAction(linux.SIGCHLD, &linux.SigAction{Handler: linux.SIG_IGN})
		defer c.Proc.SetAction(linux.SIGCHLD, &old)
		pid := c.spawn(t, fork, func(c *Thread) {})
		if _, e := c.Wait(&WaitArgs{Kind: linux.P_ALL, Options: linux.WEXITED}); e != linux.ECHILD {
			t.Error(e)
		}
		if Lookup(pid) != nil {
			t.Error("a zombie is left")
		}
	})
}

func TestStopAndContinue(t *testing.T) {
	asInit(func(c *Thread) {
		done := make(chan bool)
		pid := c.spawn(t, fork, func(c *Thread) {
			for {
				select {
				case <-done:
					return
				default:
				}
				if !c.call(func() { c.Arm(); c.Sleep(wait.Now() + 1e6) }) {
					return
				}
			}
		})
		p := Lookup(pid)
		p.SendSignal(linux.SIGSTOP)
		r := c.waitFor(t, pid)
		if r.Code != linux.CLD_STOPPED || r.Status != int32(linux.SIGSTOP)<<8|0x7f {
			t.Errorf("%+v", r)
		}
		if s := p.State(); s != StateStopped {
			t.Errorf("state %c", s.Letter())
		}
		// Other signals wait while it is stopped.
		p.SendSignal(linux.SIGCONT)
		if r = c.waitFor(t, pid); r.Code != linux.CLD_CONTINUED || r.Status != 0xffff {
			t.Errorf("%+v", r)
		}
		p.SendSignal(linux.SIGSTOP)
		c.waitFor(t, pid)
		p.SendSignal(linux.SIGKILL)
		if r = c.waitFor(t, pid); r.Status != int32(linux.SIGKILL) {
			t.Errorf("killed while stopped: %+v", r)
		}
		close(done)
	})
}

// A stopped group that loses its connection to the session is hung up.
func TestOrphanedGroup(t *testing.T) {
	asInit(func(c *Thread) {
		got := make(chan linux.Signal, 1)
		pids := make(chan int32, 1)
		session := c.spawn(t, fork, func(c *Thread) {
			if e := c.Proc.Setsid(); e != 0 {
				t.Error(e)
			}
			pid := c.spawn(t, fork, func(c *Thread) {
				if e := c.Proc.Setpgid(0, 0); e != 0 {
					t.Error(e)
				}
				c.Proc.SendSignal(linux.SIGSTOP)
				if !c.call(func() {}) {
					c.Proc.mu.Lock()
					got <- linux.Signal(c.Proc.status)
					c.Proc.mu.Unlock()
				}
			})
			pids <- pid
			c.waitFor(t, pid) // stopped
		})
		c.waitFor(t, session)
		if sig := <-got; sig != linux.SIGHUP {
			t.Errorf("killed by %d", sig)
		}
		c.waitFor(t, <-pids)
	})
}

func TestGroups(t *testing.T) {
	asInit(func(c *Thread) {
		gate := make(chan bool)
		pid := c.spawn(t, fork, func(c *Thread) { <-gate })
		pid2 := c.spawn(t, fork, func(c *Thread) { <-gate })
		p := c.Proc
		if e := p.Setpgid(pid, 0); e != 0 {
			t.Error(e)
		}
		if e := p.Setpgid(pid2, pid); e != 0 {
			t.Error(e)
		}
		if n := len(GroupMembers(pid)); n != 2 {
			t.Errorf("%d members", n)
		}
		if e := p.Setpgid(pid2, 9999); e != linux.EPERM {
			t.Errorf("no such group: %v", e)
		}
		if e := p.Setpgid(0, 0); e != linux.EPERM {
			t.Errorf("a session leader: %v", e)
		}
		Lookup(pid).execs.Store(1)
		if e := p.Setpgid(pid, pid2); e != linux.EACCES {
			t.Errorf("after exec: %v", e)
		}
		close(gate)
		c.waitFor(t, pid)
		// The group lives on with its number, which nobody else may get.
		if GroupByID(pid) == nil || pidUsed[pid/64]>>(pid%64)&1 == 0 {
			t.Error("the group ended with its leader")
		}
		c.waitFor(t, pid2)
		if GroupByID(pid) != nil || pidUsed[pid/64]>>(pid%64)&1 != 0 {
			t.Error("the group outlived its members")
		}
	})
}

const threadFlags = linux.CLONE_VM | linux.CLONE_FS | linux.CLONE_FILES | linux.CLONE_SIGHAND | linux.CLONE_THREAD

// exit_group ends threads that are blocked; the process ends with the last.
func TestThreadsEnd(t *testing.T) {
	asInit(func(c *Thread) {
		pid := c.spawn(t, fork, func(c *Thread) {
			for range 3 {
				c.spawn(t, CloneArgs{Flags: threadFlags, Stack: 4096}, func(c *Thread) {
					for c.call(func() { c.Arm(); c.Sleep(wait.NoDeadline) }) {
					}
				})
			}
			if n := len(c.Proc.Threads()); n != 4 {
				t.Errorf("%d threads", n)
			}
			c.ExitGroup(3)
		})
		if r := c.waitFor(t, pid); r.Status != 3<<8 {
			t.Errorf("%+v", r)
		}
		if _, n := Counts(); n != 1 {
			t.Errorf("%d threads left", n)
		}
	})
}

// The leader may end first; the process keeps its number, and ends with the status of
// the last thread.
func TestLeaderEndsFirst(t *testing.T) {
	asInit(func(c *Thread) {
		gate := make(chan bool)
		pid := c.spawn(t, fork, func(c *Thread) {
			c.spawn(t, CloneArgs{Flags: threadFlags, Stack: 4096}, func(c *Thread) {
				<-gate
				c.Exit(5)
			})
			c.Exit(3)
		})
		eventually(t, "leader's end", func() bool { return ByTID(pid) == nil })
		p := Lookup(pid)
		if p == nil || p.Zombie() {
			t.Error("the process ended with its leader")
		}
		close(gate)
		if r := c.waitFor(t, pid); r.Status != 5<<8 {
			t.Errorf("%+v", r)
		}
	})
}

func TestCloneRefuses(t *testing.T) {
	asInit(func(c *Thread) {
		for _, f := range []uint64{
			linux.CLONE_NEWNS, linux.CLONE_NEWUSER, linux.CLONE_NEWPID, linux.CLONE_THREAD,
			linux.CLONE_SIGHAND, linux.CLONE_THREAD | linux.CLONE_SIGHAND,
			linux.CLONE_SIGHAND | linux.CLONE_VM | linux.CLONE_CLEAR_SIGHAND, linux.CLONE_PARENT,
		} {
			if _, e := c.Clone(&CloneArgs{Flags: f, ExitSignal: linux.SIGCHLD}); e != linux.EINVAL {
				t.Errorf("flags %#x: %v", f, e)
			}
		}
	})
}

// A fork bomb meets RLIMIT_NPROC as a user and the system's limit as root.
func TestForkBombEnds(t *testing.T) {
	asInit(func(c *Thread) {
		old := MaxThreads()
		SetMaxThreads(20)
		defer SetMaxThreads(old)
		gate := make(chan bool)
		n := 0
		for n < 100 {
			if _, e := World.Clone(c, fork, func(*Thread) { <-gate }); e != 0 {
				if e != linux.EAGAIN {
					t.Error(e)
				}
				break
			}
			n++
		}
		if n != 19 {
			t.Errorf("%d children", n)
		}
		close(gate)
		for range n {
			if _, e := c.Wait(&WaitArgs{Kind: linux.P_ALL, Options: linux.WEXITED}); e != 0 {
				t.Error(e)
			}
		}
	})
	asInit(func(c *Thread) {
		pid := c.spawn(t, fork, func(c *Thread) {
			c.Proc.Prlimit(&c.Ctx, linux.RLIMIT_NPROC, &linux.Rlimit{Cur: 1, Max: 1})
			n, _ := creds.SetUID(c.Cred(), 1000)
			c.ChangeCred(n)
			if _, e := c.Clone(&fork); e != linux.EAGAIN {
				t.Error(e)
			}
		})
		c.waitFor(t, pid)
	})
}

func TestDeathSignal(t *testing.T) {
	asInit(func(c *Thread) {
		pids := make(chan int32, 1)
		ready := make(chan bool)
		pid := c.spawn(t, fork, func(c *Thread) {
			pids <- c.spawn(t, fork, func(c *Thread) {
				c.Proc.SetDeathSignal(int32(linux.SIGUSR1))
				close(ready)
				for c.call(func() { c.Arm(); c.Sleep(wait.NoDeadline) }) {
				}
			})
			<-ready
		})
		c.waitFor(t, pid)
		if r := c.waitFor(t, <-pids); r.Status != int32(linux.SIGUSR1) {
			t.Errorf("%+v", r)
		}
	})
}

func TestPIDs(t *testing.T) {
	treeMu.Lock()
	defer treeMu.Unlock()
	old := lastPID.Load()
	defer lastPID.Store(old)
	lastPID.Store(maxPID - 2)
	a, b := allocPID(0), allocPID(0)
	if a != maxPID-1 || b != firstPID {
		t.Errorf("%d %d", a, b)
	}
	dropPID(a)
	dropPID(b)
	if pidUsed[a/64]>>(a%64)&1 != 0 {
		t.Error("number not freed")
	}
	if pidChunks[a/slotsPerChunk].Load() != nil || pidChunks[b/slotsPerChunk].Load() == nil {
		t.Error("slots that nobody has stay, or those of the next number do not")
	}
}

var _ = creds.AllCaps
