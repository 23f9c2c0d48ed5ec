package proc

import (
	"sync"
	"sync/atomic"

	"hardtack/abi/linux"
	"hardtack/kernel/base/creds"
	"hardtack/kernel/base/wait"
	"hardtack/kernel/fs/vfs"
	"hardtack/kernel/mm/vm"
	"hardtack/kernel/process/program"
)

// Process is a process. Its fields stand in a type for each lock that guards them.
type Process struct {
	PID       int32 // immutable
	startTime int64 // monotonic nanoseconds; immutable

	kinship     // guarded by treeMu
	threadGroup // guarded by its mu
	attributes  // atomic
	limits      resourceLimits

	execs  atomic.Uint32 // calls of exec, at most 2³²-1
	uid    atomic.Uint32 // real user ID
	maxRSS atomic.Int64  // KiB, of address spaces that it left
	image  atomic.Pointer[program.Image]

	// Children announces changes of the children's state to wait4.
	Children wait.Queue
	jobs     atomic.Bool // a child may have been stopped, once
	// ExecPages counts the frames that an exec under way has for its arguments.
	ExecPages atomic.Int64
	held      atomic.Pointer[held] // what it held at the last survey; changed under killer.mu
	// Ended announces the process's end (pidfd).
	Ended wait.Queue
	// SigQueue announces every signal that becomes pending (signalfd).
	SigQueue wait.Queue
}

// kinship is a process's place in the tree; guarded by treeMu. What is atomic may be read
// without it.
type kinship struct {
	parent                   atomic.Pointer[Process]
	firstChild, lastChild    *Process
	prevSibling, nextSibling *Process
	zombies                  zombies // of its children
	zombieAt                 int     // place among its parent's zombies
	born                     uint64  // a later child of its parent has a higher number
	group                    atomic.Pointer[Group]
	prevMember, nextMember   *Process     // in group
	maker                    int32        // the thread of the parent whose child it is; 0: any that is left
	parentExecs              uint32       // what execs of the parent was when it made this one
	exitSignal               atomic.Int32 // what the parent gets; 0 none
	subreaper                bool         // PR_SET_CHILD_SUBREAPER
	reaps                    bool         // process 1 that is no init: what it inherits is collected for it
	inherited                bool         // by such a process
	hasSubreaper             bool         // an ancestor is or was one
	reaped                   bool
	childTime                clockTimes // of children waited for
	childFaults, childMaxRSS atomic.Int64
	childSwitches            [2]int64 // of children waited for
}

// threadGroup is a process's threads and what they share; guarded by mu.
type threadGroup struct {
	mu           sync.Mutex
	threads      []*Thread   // living
	leader       *Thread     // the thread whose TID is PID, nil once it ended
	first        *Thread     // the same, which stays
	zombie       atomic.Bool // all threads have ended; read without mu
	sig          processSignals
	exiting      bool       // exit_group or a deadly signal
	status       int32      // wait status, once exiting
	execing      *Thread    // the thread that ends its siblings
	deadTime     clockTimes // of threads that ended
	told         clockTimes // what was last told of the process
	deadFaults   int64
	deadIO       IOCount
	deadSwitches [2]int64
	itimers      itimers
}

// attributes are what prctl, personality and /proc set of a process; all atomic.
type attributes struct {
	oomScore    atomic.Int32 // oom_score_adj
	doomed      atomic.Int64 // when it was seen ending for memory, in monotonic nanoseconds
	oomMin      atomic.Int32 // the least it may become without CAP_SYS_RESOURCE
	personality atomic.Uint32
	THPDisable  atomic.Bool   // PR_SET_THP_DISABLE
	deathSignal atomic.Int32  // PR_SET_PDEATHSIG
	Traced      atomic.Uint32 // the tracing session that its calls are shown in (kernel/trace); 0: none
}

// inherit sets the attributes that a new process has from its parent.
func (a *attributes) inherit(from *attributes) {
	a.oomScore.Store(from.oomScore.Load())
	a.oomMin.Store(from.oomMin.Load())
	a.personality.Store(from.personality.Load())
	a.THPDisable.Store(from.THPDisable.Load())
	a.Traced.Store(from.Traced.Load())
}

// Group is a process group.
type Group struct {
	ID      int32    // immutable
	Session *Session // immutable
	first   *Process // members, the zombies last; guarded by treeMu
	last    *Process // guarded by treeMu
	n       int      // guarded by treeMu
}

// Session is a session of process groups.
type Session struct {
	ID     int32    // immutable
	Leader *Process // guarded by treeMu; nil once it ended
	groups int      // guarded by treeMu

	ttyMu sync.Mutex
	tty   any // controlling terminal; guarded by ttyMu
}

// TTY returns the controlling terminal, nil for none.
func (s *Session) TTY() any {
	s.ttyMu.Lock()
	defer s.ttyMu.Unlock()
	return s.tty
}

// SetTTY sets the controlling terminal.
func (s *Session) SetTTY(v any) {
	s.ttyMu.Lock()
	s.tty = v
	s.ttyMu.Unlock()
}

// Group returns the process's group; never nil.
func (k *kinship) Group() *Group { return k.group.Load() }

// Session returns the process's session; never nil.
func (k *kinship) Session() *Session { return k.group.Load().Session }

// Parent returns the parent process, nil for process 1.
func (k *kinship) Parent() *Process { return k.parent.Load() }

// PPID returns the parent's number, 0 for process 1.
func (k *kinship) PPID() int32 {
	if q := k.parent.Load(); q != nil {
		return q.PID
	}
	return 0
}

// UID returns the real user ID.
func (p *Process) UID() uint32 { return p.uid.Load() }

// Image returns the program that runs; nil before the first exec.
func (p *Process) Image() *program.Image { return p.image.Load() }

// Zombie reports that all threads have ended and the parent has not waited yet.
func (g *threadGroup) Zombie() bool { return g.zombie.Load() }

// Name returns the leader's name (comm), of a zombie too.
func (g *threadGroup) Name() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.first.Name()
}

// Cred returns the leader's credentials, of a zombie too.
func (g *threadGroup) Cred() *creds.Cred {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.first.Cred()
}

// State returns what /proc shows of the process.
func (g *threadGroup) State() State {
	if g.Zombie() {
		return StateZombie
	}
	return g.First().State()
}

// First returns the process's first thread. If that has ended it is a zombie until the
// process is waited for, though others run.
func (g *threadGroup) First() *Thread {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.first
}

// CountThreads returns how many threads there are, the first one with them even if it
// has ended.
func (g *threadGroup) CountThreads() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := len(g.threads)
	if g.leader == nil {
		n++
	}
	return n
}

// ExitStatus returns a zombie's wait status.
func (g *threadGroup) ExitStatus() int32 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.status
}

// OOMScoreAdj, SetOOMScoreAdj: /proc/PID/oom_score_adj.
func (a *attributes) OOMScoreAdj() int32 { return a.oomScore.Load() }

// SetOOMScoreAdj sets it: without privilege not below what was set with it.
func (a *attributes) SetOOMScoreAdj(v int32, privileged bool) linux.Errno {
	if v < a.oomMin.Load() && !privileged {
		return linux.EACCES
	}
	a.oomScore.Store(v)
	if privileged {
		a.oomMin.Store(v)
	}
	return 0
}

// Personality returns personality(2)'s value.
func (a *attributes) Personality() uint32 { return a.personality.Load() }

// SetPersonality sets it.
func (a *attributes) SetPersonality(v uint32) { a.personality.Store(v) }

// DeathSignal returns what PR_SET_PDEATHSIG set.
func (a *attributes) DeathSignal() int32 { return a.deathSignal.Load() }

// SetDeathSignal sets it.
func (a *attributes) SetDeathSignal(v int32) { a.deathSignal.Store(v) }

// Subreaper reports PR_SET_CHILD_SUBREAPER.
func (p *Process) Subreaper() bool {
	treeMu.Lock()
	defer treeMu.Unlock()
	return p.subreaper
}

// SetSubreaper sets it, and marks all descendants to search for one.
func (p *Process) SetSubreaper(on bool) {
	treeMu.Lock()
	defer treeMu.Unlock()
	p.subreaper = on
	if on {
		p.markDescendants()
	}
}

// markDescendants walks the tree without recursion, because users control its depth.
func (p *Process) markDescendants() {
	for q := p; ; {
		if c := q.firstChild.unmarked(); c != nil {
			c.hasSubreaper = true
			q = c
			continue
		}
		for q != p && q.nextSibling.unmarked() == nil {
			q = q.parent.Load()
		}
		if q == p {
			return
		}
		q = q.nextSibling.unmarked()
		q.hasSubreaper = true
	}
}

// unmarked returns p, or the first of its next siblings that does not know of a
// subreaper yet.
func (p *Process) unmarked() *Process {
	for p != nil && p.hasSubreaper {
		p = p.nextSibling
	}
	return p
}

// Threads returns the living threads.
func (g *threadGroup) Threads() []*Thread {
	g.mu.Lock()
	defer g.mu.Unlock()
	return append([]*Thread(nil), g.threads...)
}

// Main returns a thread that represents the process (its leader, or another one when that
// has ended); nil for a zombie.
func (g *threadGroup) Main() *Thread {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.leader != nil || len(g.threads) == 0 {
		return g.leader
	}
	return g.threads[0]
}

// AcquireSpace returns the address space to look at (EndLook), or nil. It
// is for sizes, which everybody may know; Inspect is the way to the content.
func (g *threadGroup) AcquireSpace() *vm.Space {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, t := range g.threads {
		if t.Space != nil {
			t.Space.Look()
			return t.Space
		}
	}
	return nil
}

// StartArgs describe process 1.
type StartArgs struct {
	Path    string
	Argv    []string
	Env     []string
	Dir     string // working directory; "/" if empty
	Cred    *creds.Cred
	Console *vfs.File // descriptors 0, 1, 2; may be nil. The reference is taken over.
	FS      *vfs.FSContext
	Reap    bool    // process 1 is no init: see Process.reaps
	origin  *Origin // nil: limits and the rest are process 1's
}
