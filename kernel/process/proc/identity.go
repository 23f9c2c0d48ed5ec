package proc

import (
	"hardtack/abi/linux"
	"hardtack/kernel/base/accounts"
	"hardtack/kernel/base/creds"
	"hardtack/kernel/base/settings"
	"hardtack/kernel/mm/vm"
	"hardtack/kernel/process/program"
)

// assume makes the process the new program: address space, credentials,
// dumpability, personality and whatever else tells who may look into it change
// at once, under mu. It returns what the caller releases.
func (t *Thread) assume(x *program.Program, s *vm.Space, img *program.Image) (old *vm.Space, prev *program.Image) {
	p := t.Proc
	before, n := t.Cred(), x.Cred
	dump := vm.DumpUser
	grown := raises(before, n)
	if grown || x.Unreadable || before.EUID != before.UID || before.EGID != before.GID {
		dump = int32(settings.SuidDumpable.Get())
	}
	if dump != vm.DumpUser {
		s.SetDumpable(dump)
	}
	if x.Secure {
		s.Limits = p.limits.get
	}

	p.mu.Lock()
	defer p.mu.Unlock()
	old = t.Space
	t.Space, t.Mem = s, s
	p.sig.actions = p.sig.actions.Own()
	p.sig.actions.Flush()
	prev = p.image.Swap(img)
	t.SetCred(n)
	if x.Secure || grown {
		p.deathSignal.Store(0)
	}
	if x.Secure {
		p.limits.cutStack()
	}
	if v := p.personality.Load(); v&x.Clear != 0 {
		p.personality.Store(v &^ x.Clear)
	}
	p.execs.Add(1)
	p.exitSignal.Store(int32(linux.SIGCHLD))
	p.chargeTo(n.User)
	return old, prev
}

// raises reports a change of credentials after which the old user has no business
// in the process any more (commit_creds).
func raises(old, n *creds.Cred) bool {
	return n.EUID != old.EUID || n.EGID != old.EGID || n.FSUID != old.FSUID || n.FSGID != old.FSGID ||
		n.Permitted&^old.Permitted != 0
}

// ChangeCred installs credentials of the calling thread, and charges the
// process to its new real user. Whoever sees them sees what follows from them.
func (t *Thread) ChangeCred(n *creds.Cred) {
	p := t.Proc
	p.mu.Lock()
	if raises(t.Cred(), n) {
		if t.Space != nil {
			t.Space.SetDumpable(int32(settings.SuidDumpable.Get()))
		}
		p.deathSignal.Store(0)
	}
	changed := n.UID != t.Cred().UID
	t.SetCred(n)
	if changed {
		t.tooMany = n.UID != 0 && p.manyThreads(n.User)
		p.chargeTo(n.User)
	}
	p.mu.Unlock()
	t.FDs.SetOwner(n)
}

// manyThreads reports that a user has more threads than RLIMIT_NPROC says.
func (p *Process) manyThreads(u *accounts.User) bool {
	return uint64(u.Threads.Load()) > p.limits.get(linux.RLIMIT_NPROC)
}

// chargeTo charges the process's threads to another user; the caller holds mu.
func (p *Process) chargeTo(n *accounts.User) {
	p.uid.Store(n.UID)
	for _, t := range p.threads {
		t.Space.SetOwner(n.UID)
	}
	old := p.sig.user
	if old == n {
		return
	}
	p.sig.user = n
	k := int64(len(p.threads))
	if p.leader == nil { // it has ended, and is counted until it is waited for
		k++
	}
	n.Threads.Add(k)
	old.Threads.Add(-k)
	threadPool.Move(old, n, k)
}
