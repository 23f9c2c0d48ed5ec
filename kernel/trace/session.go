// Package trace shows the system calls of programs from outside, as strace does: an open
// file /proc/hardtack/trace is a session, to which one writes whose calls to show, and from
// which one reads them as text.
//
// Each thread has a function for its calls (proc.SetTracing), so that calls that are not
// traced cost what they ever do. A traced call is written down on the stack of the thread's
// goroutine and then copied into the session's ring, without an allocation. Traced programs
// never wait for the reader: a full ring drops lines and says how many.
//
// Locks: session.mu comes after those of processes; only the queue's is taken under it.
package trace

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"hardtack/abi/linux"
	"hardtack/kernel/base/clocks"
	"hardtack/kernel/base/wait"
	"hardtack/kernel/process/proc"
	"hardtack/kernel/syscall"
)

// ringSize is how many bytes wait for the reader at most.
const ringSize = 256 << 10

// session is what one open file shows. There is one at a time.
type session struct {
	id    uint32 // what traced processes have as their mark; immutable
	owner int32  // the process that opened it is never shown; immutable

	some  atomic.Bool // only the calls in calls
	calls [syscall.TableSize]atomic.Bool

	queue wait.Queue
	mu    sync.Mutex
	ring  []byte // guarded by mu
	first int    // of the n bytes in ring; guarded by mu
	n     int    // guarded by mu
	lost  int    // lines since the last one that had room; guarded by mu
	ended bool   // no process has the mark any more; guarded by mu
}

var (
	current atomic.Pointer[session]
	// opening makes sessions, and begins and ends interception, one after the other.
	opening sync.Mutex
	ids     uint32 // guarded by opening
	// recording says that the flight recorder has every call intercepted; guarded by opening.
	recording bool
	forms     map[int]*form
)

// start begins a session for the process owner.
func start(owner int32) (*session, linux.Errno) {
	opening.Lock()
	defer opening.Unlock()
	if current.Load() != nil || recording {
		return nil, linux.EBUSY
	}
	if forms == nil {
		f, err := parse(syscall.NumberOf)
		if err != nil {
			return nil, linux.EINVAL
		}
		forms = f
	}
	ids++
	s := &session{id: ids, owner: owner, ring: make([]byte, ringSize)}
	current.Store(s)
	syscall.Intercept(traced)
	proc.SetTracing(s.id, false)
	return s, 0
}

// stop ends it.
func (s *session) stop() {
	opening.Lock()
	defer opening.Unlock()
	proc.SetTracing(0, false)
	current.Store(nil)
}

// wants reports whether the thread's calls are to be shown.
func (s *session) wants(t *proc.Thread) bool {
	return t.Proc.Traced.Load() == s.id || proc.TracingAll() && t.PID != s.owner
}

// command carries out a line that was written: "all", "pid N", or "calls NAME,NAME" ("calls
// !NAME,NAME" for all others).
func (s *session) command(row string) linux.Errno {
	verb, rest, _ := strings.Cut(strings.TrimSpace(row), " ")
	switch verb {
	case "":
		return 0
	case "all":
		proc.SetTracing(s.id, true)
		return 0
	case "pid":
		var pid int32
		if _, err := fmt.Sscanf(rest, "%d", &pid); err != nil {
			return linux.EINVAL
		}
		p := proc.Lookup(pid)
		if p == nil {
			return linux.ESRCH
		}
		if pid == s.owner {
			return linux.EPERM
		}
		p.Trace(s.id)
		return 0
	case "calls":
		return s.choose(rest)
	}
	return linux.EINVAL
}

// choose says which calls are shown.
func (s *session) choose(list string) linux.Errno {
	list, not := strings.CutPrefix(strings.TrimSpace(list), "!")
	var chosen [syscall.TableSize]bool
	for name := range strings.SplitSeq(list, ",") {
		nr, ok := syscall.NumberOf(strings.TrimSpace(name))
		if !ok || nr >= len(chosen) {
			return linux.EINVAL
		}
		chosen[nr] = true
	}
	for i, yes := range chosen {
		s.calls[i].Store(yes != not)
	}
	s.some.Store(true)
	return 0
}

// put adds a line for the reader.
func (s *session) put(l *line) {
	l.n = min(l.n, room-1)
	l.byte('\n')
	s.mu.Lock()
	if s.lost > 0 && s.n+l.n+64 <= len(s.ring) {
		var note line
		note.text("... ")
		note.unsigned(uint64(s.lost))
		note.text(" lines lost\n")
		s.add(note.b[:note.n])
		s.lost = 0
	}
	if s.lost > 0 || s.n+l.n > len(s.ring) {
		s.lost++
	} else {
		s.add(l.b[:l.n])
	}
	s.mu.Unlock()
	s.queue.Notify(wait.In | wait.RdNorm)
}

// add copies bytes for which there is room; mu is held.
func (s *session) add(b []byte) {
	at := (s.first + s.n) % len(s.ring)
	if n := copy(s.ring[at:], b); n < len(b) {
		copy(s.ring, b[n:])
	}
	s.n += len(b)
}

// begin writes what each line begins with: the thread and the time.
func (c *call) begin() {
	c.signed(int64(c.t.TID))
	c.byte(' ')
	c.fraction(uint64(clocks.Realtime())/1000, 1e6, 6)
	c.byte(' ')
}

// traced carries out a call by its handler, and shows it if the session wants that.
func traced(t *proc.Thread, a *syscall.Args, nr int, handler syscall.Handler) (uint64, linux.Errno) {
	s := current.Load()
	if s == nil || !s.wants(t) || s.some.Load() && !s.calls[nr].Load() {
		return handler(t, a)
	}
	return s.show(t, a, nr, handler)
}

// show carries out a call and writes it down.
func (s *session) show(t *proc.Thread, a *syscall.Args, nr int, handler syscall.Handler) (uint64, linux.Errno) {
	c := call{t: t, args: *a}
	c.begin()
	head := c.n
	f := forms[nr]
	if f == nil {
		f = &unknown
	}
	if d := syscall.Lookup(uint64(nr)); d != nil {
		c.text(d.Name)
	} else if name := missing[nr]; name != "" {
		c.text(name)
	} else {
		c.text("syscall_")
		c.hex(uint64(nr))
	}
	c.byte('(')
	c.arguments(f, 0, f.split)
	if nr == linux.SYS_exit || nr == linux.SYS_exit_group {
		c.text(") = ?")
		s.put(&c.line)
		return handler(t, a)
	}
	from := clocks.Monotonic()
	c.ret, c.err = handler(t, a)
	took := clocks.Monotonic() - from
	c.arguments(f, f.split, f.n)
	c.byte(')')
	for c.n < head+column {
		c.byte(' ')
	}
	c.outcome(f, nr)
	c.text(" <")
	c.fraction(uint64(max(took, 0))/1000, 1e6, 6)
	c.byte('>')
	s.put(&c.line)
	return c.ret, c.err
}

// unknown is the form of calls without one.
var unknown = form{args: [6]arg{{op: opHex}, {op: opHex}, {op: opHex}, {op: opHex}, {op: opHex}, {op: opHex}}, n: 6, split: 6}

// outcome writes a call's result.
func (c *call) outcome(f *form, nr int) {
	c.text(" = ")
	switch {
	case c.err == 0:
		switch {
		case nr == linux.SYS_fcntl && (c.args[1] == linux.F_GETFD || c.args[1] == linux.F_GETFL):
			c.hex(c.ret)
		case nr == linux.SYS_rt_sigreturn:
			c.signed(int64(c.ret))
		default:
			c.scalar(&arg{op: f.result}, c.ret)
		}
		c.remark(nr)
	case c.err == linux.ERESTARTSYS:
		c.text("? ERESTARTSYS (To be restarted if SA_RESTART is set)")
	case c.err == linux.ERESTARTNOINTR:
		c.text("? ERESTARTNOINTR (To be restarted)")
	case c.err == linux.ERESTARTNOHAND:
		c.text("? ERESTARTNOHAND (To be restarted if no handler)")
	case c.err == linux.ERESTART_RESTARTBLOCK:
		c.text("? ERESTART_RESTARTBLOCK (Interrupted by signal)")
	default:
		c.text("-1 ")
		if n := int(c.err); n < len(errnoNames) && errnoNames[n] != "" {
			c.text(errnoNames[n])
		} else {
			c.unsigned(uint64(c.err))
		}
		c.text(" (")
		why := c.err.Error()
		c.byte(why[0] &^ 0x20) // the C library begins with a capital
		c.text(why[1:])
		c.byte(')')
	}
}

// remark adds to the result of some calls what it means.
func (c *call) remark(nr int) {
	switch {
	case (nr == linux.SYS_poll || nr == linux.SYS_ppoll) && c.ret == 0:
		c.text(" (Timeout)")
	case nr == linux.SYS_poll || nr == linux.SYS_ppoll:
		c.text(" (")
		c.polls(c.args[0], c.args[1], "revents", 6)
		c.byte(')')
	case nr == linux.SYS_fcntl && c.args[1] == linux.F_GETFD && c.ret == 1:
		c.text(" (flags FD_CLOEXEC)")
	case nr == linux.SYS_fcntl && c.args[1] == linux.F_GETFL:
		c.text(" (flags ")
		c.text([4]string{"O_RDONLY", "O_WRONLY", "O_RDWR", "O_ACCMODE"}[c.ret&3])
		c.rest(c.ret&^3, openNames)
		c.byte(')')
	}
}

// column is where a result stands at least, behind the call's name.
const column = 33

// Exited shows the end of a thread, and ends the session with the last traced process.
func Exited(t *proc.Thread, last bool) {
	s := current.Load()
	if s == nil || !s.wants(t) {
		return
	}
	status := t.EndStatus()
	c := call{t: t}
	c.begin()
	if sig := uint64(status & 0x7f); sig != 0 {
		c.text("+++ killed by ")
		c.signal(sig)
		if status&0x80 != 0 {
			c.text(" (core dumped)")
		}
	} else {
		c.text("+++ exited with ")
		c.unsigned(uint64(status >> 8 & 0xff))
	}
	c.text(" +++")
	s.put(&c.line)
	if last && !proc.TracingAll() && t.Proc.Traced.Load() == s.id {
		s.left(t.Proc)
	}
}

// left ends the session if no process but p has its mark.
func (s *session) left(p *proc.Process) {
	others := false
	proc.Each(func(q *proc.Process) bool {
		others = q != p && q.Traced.Load() == s.id && !q.Zombie()
		return !others
	})
	if !others {
		s.mu.Lock()
		s.ended = true
		s.mu.Unlock()
		s.queue.Notify(wait.In | wait.RdNorm | wait.Hup)
	}
}

// Signalled shows a signal that a thread takes; code says why it was sent.
func Signalled(t *proc.Thread, sig linux.Signal, code int32) {
	s := current.Load()
	if s == nil || !s.wants(t) {
		return
	}
	c := call{t: t}
	c.begin()
	c.text("--- ")
	c.signal(uint64(sig))
	c.text(" {si_signo=")
	c.signal(uint64(sig))
	c.text(", si_code=")
	c.code(sig, code)
	c.text("} ---")
	s.put(&c.line)
}

// code writes why a signal was sent.
func (c *call) code(sig linux.Signal, code int32) {
	switch {
	case code == linux.SI_USER:
		c.text("SI_USER")
	case code == linux.SI_TKILL:
		c.text("SI_TKILL")
	case code == linux.SI_QUEUE:
		c.text("SI_QUEUE")
	case code == linux.SI_TIMER:
		c.text("SI_TIMER")
	case code == linux.SI_KERNEL:
		c.text("SI_KERNEL")
	case sig == linux.SIGCHLD && code >= 1 && code < int32(len(childCodes)):
		c.text(childCodes[code])
	case sig == linux.SIGSEGV && code == linux.SEGV_MAPERR:
		c.text("SEGV_MAPERR")
	case sig == linux.SIGSEGV && code == linux.SEGV_ACCERR:
		c.text("SEGV_ACCERR")
	default:
		c.signed(int64(code))
	}
}

var childCodes = [...]string{1: "CLD_EXITED", 2: "CLD_KILLED", 3: "CLD_DUMPED", 4: "CLD_TRAPPED", 5: "CLD_STOPPED", 6: "CLD_CONTINUED"}
