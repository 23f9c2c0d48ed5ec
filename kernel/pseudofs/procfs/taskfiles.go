package procfs

import (
	"cmp"
	"fmt"
	"strconv"

	"hardtack/abi/linux"
	"hardtack/kernel/base/creds"
	"hardtack/kernel/process/proc"
)

// refuse is a write to a map of IDs: there is one user namespace, whose map is fixed.
func refuse(*about, []byte) linux.Errno { return linux.EPERM }

// readSyscall tells in which call the thread is, with its arguments, stack pointer and
// program counter. What it says of a thread that runs would not be true any more.
func readSyscall(x *about) (b []byte, e linux.Errno) {
	t := x.thread()
	if !x.mayLook(nil) {
		return nil, linux.EPERM
	}
	c, running := t.Call(proc.Of(x.c) == t)
	switch {
	case running:
		return []byte("running\n"), 0
	case !c.In:
		b = append(b, "-1"...)
	default:
		b = strconv.AppendUint(b, c.Number, 10)
		for _, v := range c.Args {
			b = append(b, " 0x"...)
			b = appendHex(b, v, 1)
		}
	}
	b = appendHex(append(b, " 0x"...), c.SP, 1)
	b = appendHex(append(b, " 0x"...), c.PC, 1)
	return append(b, '\n'), 0
}

// readSchedstat tells for how many nanoseconds the thread ran and waited for its turn,
// and how often it was given the CPU.
func readSchedstat(x *about) ([]byte, linux.Errno) {
	var ran, waited, turns int64
	if t := x.thread(); t != nil {
		ran, waited, turns = t.Queue()
	}
	return fmt.Appendf(nil, "%d %d %d\n", ran, waited, turns), 0
}

// readChildren lists the children that a thread has: all are the first thread's.
func readChildren(x *about) ([]byte, linux.Errno) {
	var b []byte
	for _, pid := range x.t.Children() {
		b = append(strconv.AppendInt(b, int64(pid), 10), ' ')
	}
	return b, 0
}

// slackOf returns the thread whose timer slack the asker may see and set.
func (x *about) slackOf() (*proc.Thread, linux.Errno) {
	t := x.thread()
	switch {
	case t == nil:
		return nil, linux.ESRCH
	case t != proc.Of(x.c) && !x.c.Cred().Has(creds.CapSysNice):
		return nil, linux.EPERM
	}
	return t, 0
}

func readSlack(x *about) ([]byte, linux.Errno) {
	t, e := x.slackOf()
	if e != 0 {
		return nil, e
	}
	s := t.Sched()
	return fmt.Appendf(nil, "%d\n", cmp.Or(s.Slack, s.DefaultSlack, proc.DefaultSlack)), 0
}

func writeSlack(x *about, b []byte) linux.Errno {
	v, e := parseUint(b, 0, 64)
	if e != 0 {
		return e
	}
	t, e := x.slackOf()
	if e != 0 {
		return e
	}
	return t.SetSched(func(s *proc.Sched) linux.Errno {
		s.Slack = v
		return 0
	})
}
