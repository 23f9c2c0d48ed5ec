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

// Process is a thread group.
type Process struct {
	PID int32 // immutable

	// The tree; guarded by treeMu. What is atomic may be read without it.
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
	hasSubreaper             bool         // an ancestor is or was one
	reaped                   bool
	childTime                clockTimes // of children waited for
	childFaults, childMaxRSS atomic.Int64
	childSwitches            [2]int64 // of children waited for

	execs       atomic.Uint32 // calls of exec, at most 2³²-1
	zombie      atomic.Bool   // all threads have ended
	uid         atomic.Uint32 // real user ID
	oomScore    atomic.Int32  // oom_score_adj
	oomMin      atomic.Int32  // the least it may become without CAP_SYS_RESOURCE
	personality atomic.Uint32
	THPDisable  atomic.Bool  // PR_SET_THP_DISABLE
	deathSignal atomic.Int32 // PR_SET_PDEATHSIG
	maxRSS      atomic.Int64 // KiB, of address spaces that it left
	image       atomic.Pointer[program.Image]
	limits      [linux.RLIM_NLIMITS]limit
	startTime   int64 // monotonic nanoseconds; immutable

	// Children announces changes of the children's state to wait4.
	Children wait.Queue
	jobs     atomic.Bool // a child may have been stopped, once
	// Ended announces the process's end (pidfd).
	Ended wait.Queue
	// SigQueue announces every signal that becomes pending (signalfd).
	SigQueue wait.Queue

	mu           sync.Mutex
	threads      []*Thread      // living; guarded by mu
	leader       *Thread        // the thread whose TID is PID, nil once it ended; guarded by mu
	first        *Thread        // the same, which stays; guarded by mu
	sig          processSignals // guarded by mu
	exiting      bool           // exit_group or a deadly signal; guarded by mu
	status       int32          // wait status, once exiting; guarded by mu
	execing      *Thread        // the thread that ends its siblings; guarded by mu
	deadTime     clockTimes     // of threads that ended; guarded by mu
	told         clockTimes     // what was last told of the process; guarded by mu
	deadFaults   int64          // guarded by mu
	deadIO       IOCount        // guarded by mu
	deadSwitches [2]int64       // guarded by mu
	itimers      itimers        // guarded by mu
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
func (p *Process) Group() *Group { return p.group.Load() }

// Session returns the process's session; never nil.
func (p *Process) Session() *Session { return p.group.Load().Session }

// Parent returns the parent process, nil for process 1.
func (p *Process) Parent() *Process { return p.parent.Load() }

// PPID returns the parent's number, 0 for process 1.
func (p *Process) PPID() int32 {
	if q := p.parent.Load(); q != nil {
		return q.PID
	}
	return 0
}

// UID returns the real user ID.
func (p *Process) UID() uint32 { return p.uid.Load() }

// Image returns the program that runs; nil before the first exec.
func (p *Process) Image() *program.Image { return p.image.Load() }

// Zombie reports that all threads have ended and the parent has not waited yet.
func (p *Process) Zombie() bool { return p.zombie.Load() }

// Name returns the leader's name (comm), of a zombie too.
func (p *Process) Name() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.first.Name()
}

// Cred returns the leader's credentials, of a zombie too.
func (p *Process) Cred() *creds.Cred {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.first.Cred()
}

// State returns what /proc shows of the process.
func (p *Process) State() State {
	if p.Zombie() {
		return StateZombie
	}
	return p.First().State()
}

// First returns the process's first thread. If that has ended it is a zombie until the
// process is waited for, though others run.
func (p *Process) First() *Thread {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.first
}

// CountThreads returns how many threads there are, the first one with them even if it
// has ended.
func (p *Process) CountThreads() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.threads)
	if p.leader == nil {
		n++
	}
	return n
}

// ExitStatus returns a zombie's wait status.
func (p *Process) ExitStatus() int32 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.status
}

// OOMScoreAdj, SetOOMScoreAdj: /proc/PID/oom_score_adj.
func (p *Process) OOMScoreAdj() int32 { return p.oomScore.Load() }

// SetOOMScoreAdj sets it: without privilege not below what was set with it.
func (p *Process) SetOOMScoreAdj(v int32, privileged bool) linux.Errno {
	if v < p.oomMin.Load() && !privileged {
		return linux.EACCES
	}
	p.oomScore.Store(v)
	if privileged {
		p.oomMin.Store(v)
	}
	return 0
}

// Personality returns personality(2)'s value.
func (p *Process) Personality() uint32 { return p.personality.Load() }

// SetPersonality sets it.
func (p *Process) SetPersonality(v uint32) { p.personality.Store(v) }

// DeathSignal returns what PR_SET_PDEATHSIG set.
func (p *Process) DeathSignal() int32 { return p.deathSignal.Load() }

// SetDeathSignal sets it.
func (p *Process) SetDeathSignal(v int32) { p.deathSignal.Store(v) }

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
func (p *Process) Threads() []*Thread {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]*Thread(nil), p.threads...)
}

// Main returns a thread that represents the process (its leader, or another one when that
// has ended); nil for a zombie.
func (p *Process) Main() *Thread {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.leader != nil || len(p.threads) == 0 {
		return p.leader
	}
	return p.threads[0]
}

// AcquireSpace returns the address space with a share (Release it), or nil. It
// is for sizes, which everybody may know; Inspect is the way to the content.
func (p *Process) AcquireSpace() *vm.Space {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, t := range p.threads {
		if t.Space != nil {
			t.Space.Share()
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
}
