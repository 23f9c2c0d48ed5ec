package main

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"hardtack/abi/linux"
	"hardtack/kernel/base/oops"
	"hardtack/kernel/base/settings"
	"hardtack/kernel/process/proc"
	"hardtack/kernel/syscall"
	"hardtack/nucleus"
)

// Panics on the way of a system call (docs/decisions/0093-panics.md).

var oopses atomic.Uint64

// mayOutlive lets a panic kill the process at whose call it came, and no more.
func mayOutlive() bool {
	where := oops.Locked()
	if where != "" {
		warn("a panic while a lock may be held, by %s: the machine stops", where)
		return false
	}
	return settings.PanicOnOops.Get() == 0 && (settings.OopsLimit.Get() == 0 || oopses.Load() < uint64(settings.OopsLimit.Get()))
}

func oopsText() []byte { return fmt.Appendf(nil, "%d\n", oopses.Load()) }

func reportOops(t *proc.Thread, reason any) {
	n := oopses.Add(1)
	warn("oops %d: panic: %v", n, reason)
	warn("process %d (%s), thread %d, uid %d, is killed; it was in %s", t.Proc.PID, t.Name(), t.TID, t.Cred().UID, doing(t))
	b := make([]byte, 32<<10)
	fmt.Printf("%s\n", b[:runtime.Stack(b, false)])
}

// doing says what a thread left user mode for.
func doing(t *proc.Thread) string {
	trap := &t.User.Trap
	if trap.Kind != nucleus.TrapSyscall {
		return fmt.Sprintf("an exception: vector %d, error %#x, address %#x", trap.Vector, trap.Error, trap.Addr)
	}
	name := fmt.Sprint("call ", t.CallNumber())
	if c := syscall.Lookup(t.CallNumber()); c != nil {
		name = c.Name
	}
	return fmt.Sprintf("%s%#x", name, t.Args)
}

// provoked is a lock that is held when a panic comes, for the test.
var provoked sync.Mutex

// provoke is a write to hardtack/oops: the panic that it names. Like
// /proc/sysrq-trigger it is there for tests, and for whoever may end the machine anyway.
func provoke(how string) linux.Errno {
	var none *kernel
	switch how {
	case "panic":
		panic("asked for")
	case "nil":
		none.cmdline = ""
	case "index":
		_ = make([]byte, 3)[len(how)]
	case "foreign":
		if reached, tries := nucleus.ReachForeign(); reached == 0 && tries > 0 {
			return linux.EPERM // as it must be
		}
		return 0
	case "hang":
		if nucleus.ClusterIndex() == 0 {
			return linux.EINVAL // nobody would notice
		}
		nucleus.Hang()
	case "lock":
		provoked.Lock()
		defer provoked.Unlock()
		panic("asked for, with a lock")
	}
	return linux.EINVAL
}
