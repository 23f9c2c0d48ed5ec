package sysv

import (
	"hardtack/abi/linux"
	"hardtack/kernel/base/accounts"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/settings"
	"hardtack/kernel/base/wait"
)

// maxSems bounds the semaphores of all sets (8 bytes each of kernel memory), and
// maxUndo the adjustments of all processes (4 bytes each).
const (
	maxSems = 1 << 20
	maxUndo = 1 << 20
)

// semaphore is one of a set.
type semaphore struct {
	value uint16
	pid   int32 // who changed it last
}

// semSet is a semaphore set; guarded by sems.mu.
type semSet struct {
	object
	sems  []semaphore
	otime int64
	undo  map[int32][]int32 // by process: what its end adds to each semaphore
	sleep []*semWaiter      // who is blocked, for GETNCNT and GETZCNT
}

// semWaiter is a blocked semop and the operation that it cannot carry out.
type semWaiter struct {
	num  uint16
	zero bool // waits for 0, not for more
}

var (
	sems    = table[semSet, *semSet]{max: &settings.SemMni, pool: accounts.NewPool(settings.SemMni.Get())}
	allSems = accounts.NewPool(maxSems) // semaphores of all sets; changed under sems.mu
	allUndo int                         // adjustments of all processes; guarded by sems.mu
)

// SemGet is semget(2).
func SemGet(c *caller.Ctx, key int32, n int32, flags uint32) (int32, linux.Errno) {
	if n < 0 || int64(n) > settings.SemMsl.Get() {
		return 0, linux.EINVAL
	}
	return sems.get(c, key, flags, func(s *semSet) linux.Errno {
		if int(n) > len(s.sems) {
			return linux.EINVAL
		}
		return 0
	}, func(s *semSet) linux.Errno {
		if n == 0 {
			return linux.EINVAL
		}
		if allSems.Used()+int64(n) > settings.SemMns.Get() || !allSems.Charge(s.user, int64(n)) {
			return linux.ENOSPC
		}
		s.sems = make([]semaphore, n)
		return 0
	})
}

// SemOp is semtimedop(2): all operations or none, after waiting if need be.
func SemOp(c *caller.Ctx, id int32, ops []linux.Sembuf, deadline int64, poll bool) linux.Errno {
	if len(ops) == 0 {
		return linux.EINVAL
	}
	if int64(len(ops)) > settings.SemOpm.Get() {
		return linux.E2BIG
	}
	want, undo := uint32(0o444), false
	top := uint16(0)
	for _, op := range ops {
		if op.Op != 0 {
			want = 0o222
		}
		undo = undo || op.Flags&linux.SEM_UNDO != 0
		top = max(top, op.Num)
	}
	sems.mu.Lock()
	defer sems.mu.Unlock()
	s, e := sems.lookup(c, id, 0)
	switch {
	case e != 0:
		return e
	case int(top) >= len(s.sems):
		return linux.EFBIG
	case !c.Cred().MayIPC(&s.perm, want):
		return linux.EACCES
	}
	if undo && !s.mayUndo(c.PID) {
		return linux.ENOSPC
	}
	var w *semWaiter
	for {
		c.Arm()
		stuck, e := s.try(c, ops)
		if e != 0 {
			return e
		}
		if stuck < 0 {
			break
		}
		if poll || ops[stuck].Flags&linux.IPC_NOWAIT != 0 {
			return linux.EAGAIN
		}
		if w == nil {
			w = new(semWaiter)
			s.sleep = append(s.sleep, w)
			s.waiters.Add(&c.Entry, c, wait.In)
			defer s.wakeup(c, w)
		}
		w.num, w.zero = ops[stuck].Num, ops[stuck].Op == 0
		if e := block(c, &sems.mu, &s.object, deadline); e != 0 {
			return e
		}
	}
	if undo {
		s.note(c.PID, ops)
	}
	s.otime = now()
	if want == 0o222 {
		s.waiters.Notify(wait.In)
	}
	return 0
}

// wakeup ends a wait.
func (s *semSet) wakeup(c *caller.Ctx, w *semWaiter) {
	s.waiters.Remove(&c.Entry)
	for i, x := range s.sleep {
		if x == w {
			s.sleep = append(s.sleep[:i], s.sleep[i+1:]...)
			return
		}
	}
}

// try carries out the operations in order; if one cannot be, it takes the
// others back and returns its index, -1 if all were.
func (s *semSet) try(c *caller.Ctx, ops []linux.Sembuf) (stuck int, e linux.Errno) {
	for i, op := range ops {
		v := int(s.sems[op.Num].value)
		switch {
		case op.Op == 0 && v != 0, op.Op < 0 && v+int(op.Op) < 0:
			stuck = i
		case op.Op > 0 && v+int(op.Op) > linux.SEMVMX:
			stuck, e = i, linux.ERANGE
		default:
			s.sems[op.Num].value = uint16(v + int(op.Op))
			continue
		}
		for _, op := range ops[:i] {
			s.sems[op.Num].value = uint16(int(s.sems[op.Num].value) - int(op.Op))
		}
		return stuck, e
	}
	for _, op := range ops {
		s.sems[op.Num].pid = c.PID
	}
	return -1, 0
}

// mayUndo makes room for a process's adjustments.
func (s *semSet) mayUndo(pid int32) bool {
	if s.undo[pid] != nil {
		return true
	}
	if allUndo+len(s.sems) > maxUndo {
		return false
	}
	if s.undo == nil {
		s.undo = make(map[int32][]int32)
	}
	allUndo += len(s.sems)
	s.undo[pid] = make([]int32, len(s.sems))
	return true
}

// note remembers what the end of a process must undo.
func (s *semSet) note(pid int32, ops []linux.Sembuf) {
	if !s.mayUndo(pid) { // SETALL forgot it while we slept, and others took the room
		return
	}
	for _, op := range ops {
		if op.Flags&linux.SEM_UNDO != 0 {
			s.undo[pid][op.Num] -= int32(op.Op)
		}
	}
}

// Undoes reports whether the end of a process changes semaphores.
func Undoes(pid int32) bool {
	sems.mu.Lock()
	defer sems.mu.Unlock()
	for _, s := range sems.all {
		if s != nil && s.undo[pid] != nil {
			return true
		}
	}
	return false
}

// forget drops all adjustments.
func (s *semSet) forget() {
	allUndo -= len(s.undo) * len(s.sems)
	s.undo = nil
}

// SemExit undoes what a process did with SEM_UNDO, as far as the values allow.
func SemExit(pid int32) {
	sems.mu.Lock()
	defer sems.mu.Unlock()
	for _, s := range sems.all {
		if s == nil || s.undo[pid] == nil {
			continue
		}
		for i, d := range s.undo[pid] {
			if d != 0 {
				v := int32(s.sems[i].value) + d
				s.sems[i].value = uint16(min(max(v, 0), linux.SEMVMX))
				s.sems[i].pid = pid
			}
		}
		delete(s.undo, pid)
		allUndo -= len(s.sems)
		s.otime = now()
		s.waiters.Notify(wait.In)
	}
}

// SemValues returns all values of a set (GETALL).
func SemValues(c *caller.Ctx, id int32) ([]uint16, linux.Errno) {
	sems.mu.Lock()
	defer sems.mu.Unlock()
	s, e := sems.lookup(c, id, 0o444)
	if e != 0 {
		return nil, e
	}
	v := make([]uint16, len(s.sems))
	for i := range v {
		v[i] = s.sems[i].value
	}
	return v, 0
}

// SemCount returns how many semaphores a set has, for whoever may change it.
func SemCount(c *caller.Ctx, id int32) (int, linux.Errno) {
	sems.mu.Lock()
	defer sems.mu.Unlock()
	s, e := sems.lookup(c, id, 0o222)
	if e != 0 {
		return 0, e
	}
	return len(s.sems), 0
}

// SemSetAll sets all values (SETALL).
func SemSetAll(c *caller.Ctx, id int32, values []uint16) linux.Errno {
	sems.mu.Lock()
	defer sems.mu.Unlock()
	s, e := sems.lookup(c, id, 0o222)
	if e != 0 {
		return e
	}
	if len(values) != len(s.sems) {
		return linux.EIDRM // another set has the number now
	}
	for _, v := range values {
		if v > linux.SEMVMX {
			return linux.ERANGE
		}
	}
	for i, v := range values {
		s.sems[i] = semaphore{v, c.PID}
	}
	s.forget()
	s.ctime = now()
	s.waiters.Notify(wait.In)
	return 0
}

// SemCtl is semctl(2)'s commands on one semaphore.
func SemCtl(c *caller.Ctx, id, num, cmd, value int32) (int32, linux.Errno) {
	want := uint32(0o444)
	if cmd == linux.SETVAL {
		want = 0o222
		if value < 0 || value > linux.SEMVMX {
			return 0, linux.ERANGE
		}
	}
	sems.mu.Lock()
	defer sems.mu.Unlock()
	s, e := sems.lookup(c, id, want)
	if e != 0 {
		return 0, e
	}
	if num < 0 || int(num) >= len(s.sems) {
		return 0, linux.EINVAL
	}
	x := &s.sems[num]
	switch cmd {
	case linux.GETVAL:
		return int32(x.value), 0
	case linux.GETPID:
		return x.pid, 0
	case linux.GETNCNT, linux.GETZCNT:
		n := int32(0)
		for _, w := range s.sleep {
			if int32(w.num) == num && w.zero == (cmd == linux.GETZCNT) {
				n++
			}
		}
		return n, 0
	case linux.SETVAL:
		*x = semaphore{uint16(value), c.PID}
		for _, u := range s.undo {
			u[num] = 0
		}
		s.ctime = now()
		s.waiters.Notify(wait.In)
		return 0, 0
	}
	return 0, linux.EINVAL
}

func (s *semSet) stat() linux.SemidDS {
	return linux.SemidDS{Perm: s.perm, OTime: s.otime, CTime: s.ctime, NSems: uint64(len(s.sems))}
}

// SemStat is IPC_STAT.
func SemStat(c *caller.Ctx, id int32) (linux.SemidDS, linux.Errno) {
	sems.mu.Lock()
	defer sems.mu.Unlock()
	s, e := sems.lookup(c, id, 0o444)
	if e != 0 {
		return linux.SemidDS{}, e
	}
	return s.stat(), 0
}

// SemStatIndex is SEM_STAT and, with anyone, SEM_STAT_ANY.
func SemStatIndex(c *caller.Ctx, i int32, anyone bool) (int32, linux.SemidDS, linux.Errno) {
	sems.mu.Lock()
	defer sems.mu.Unlock()
	s, e := sems.index(c, i, anyone)
	if e != 0 {
		return 0, linux.SemidDS{}, e
	}
	return s.id, s.stat(), 0
}

// SemChange is IPC_SET.
func SemChange(c *caller.Ctx, id int32, uid, gid, mode uint32) linux.Errno {
	sems.mu.Lock()
	defer sems.mu.Unlock()
	s, e := sems.owned(c, id)
	if e == 0 {
		e = s.set(uid, gid, mode)
	}
	return e
}

// SemRemove is IPC_RMID.
func SemRemove(c *caller.Ctx, id int32) linux.Errno {
	sems.mu.Lock()
	defer sems.mu.Unlock()
	s, e := sems.owned(c, id)
	if e == 0 {
		s.forget()
		allSems.Release(s.user, int64(len(s.sems)))
		sems.remove(s)
	}
	return e
}

// SemUsage returns the number of sets, the highest place in use and the number
// of semaphores.
func SemUsage() (sets, highest, n int) {
	sems.mu.Lock()
	defer sems.mu.Unlock()
	sets, highest = sems.usage()
	return sets, highest, int(allSems.Used())
}
