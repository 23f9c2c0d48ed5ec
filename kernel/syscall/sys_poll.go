package syscall

import (
	"encoding/binary"
	"math/bits"

	"hardtack/abi/linux"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/base/wait"
	"hardtack/kernel/fd/epoll"
	"hardtack/kernel/fd/signalfd"
	"hardtack/kernel/process/proc"
)

var pollCalls = []Call{
	{linux.SYS_poll, "poll", sysPoll, "works"},
	{linux.SYS_ppoll, "ppoll", sysPpoll, "works"},
	{linux.SYS_select, "select", sysSelect, "works"},
	{linux.SYS_pselect6, "pselect6", sysPselect6, "works"},
}

// sysPoll is poll(struct pollfd *fds, nfds_t nfds, int timeout).
func sysPoll(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	return pollUntil(t, a.Addr(0), a[1], limitMillis(a.Int(2)))
}

// pollUntil is poll, which goes on after a signal without a handler.
func pollUntil(t *proc.Thread, fds uio.Addr, nfds uint64, limit timeLimit) (uint64, linux.Errno) {
	n, e := pollFiles(t, fds, nfds, limit)
	if e == linux.EINTR {
		e = t.SetRestart(func(t *proc.Thread) (uint64, linux.Errno) {
			return pollUntil(t, fds, nfds, limit)
		})
	}
	return uint64(n), e
}

// sysPpoll is ppoll(fds, nfds, struct timespec *tmo, sigset_t *mask, size).
func sysPpoll(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	limit, e := limitTimespec(t, a.Addr(2))
	if e != 0 {
		return 0, e
	}
	mask, masked, e := readSigset(t, a.Addr(3), a[4])
	if e != 0 {
		return 0, e
	}
	if masked {
		t.SetTempMask(mask)
	}
	n, e := pollFiles(t, a.Addr(0), a[1], limit)
	return finishPoll(t, n, e, masked, limit, a.Addr(2), 1)
}

// finishPoll ends ppoll, select and pselect6: it puts the signal mask back and
// writes the time that is left, a struct timespec (unit 1) or timeval (unit 1000).
func finishPoll(t *proc.Thread, n int, e linux.Errno, masked bool, limit timeLimit, tmo uio.Addr, unit int64) (uint64, linux.Errno) {
	if masked {
		t.RestoreTempMask(e == linux.EINTR)
	}
	if e == linux.EINTR {
		e = linux.ERESTARTNOHAND
	}
	if tmo != 0 {
		left := linux.NsecToTimespec(limit.left())
		told := t.Proc.Personality()&linux.STICKY_TIMEOUTS == 0 && writeWords(t, tmo, left.Sec, left.Nsec/unit) == 0
		if !told && e == linux.ERESTARTNOHAND {
			e = linux.EINTR // it could not go on with the time left
		}
	}
	return uint64(n), e
}

// pollFiles is the common part of poll and ppoll.
func pollFiles(t *proc.Thread, addr uio.Addr, nfds uint64, limit timeLimit) (int, linux.Errno) {
	if nfds > t.NoFile() {
		return 0, linux.EINVAL
	}
	n := int(nfds)
	s, e := epoll.NewPollSet(t.Ctx.User(), n)
	if e != 0 {
		return 0, e
	}
	defer s.Free()
	b := s.Buf[:]
	if n*linux.SizeofPollFd > len(b) {
		b = make([]byte, n*linux.SizeofPollFd)
	}
	b = b[:n*linux.SizeofPollFd]
	if _, e := t.Mem.CopyIn(b, addr); e != 0 {
		return 0, e
	}
	for p := b; len(p) > 0; p = p[linux.SizeofPollFd:] {
		fd := int32(binary.LittleEndian.Uint32(p))
		if fd < 0 {
			s.Add(nil, 0, 0)
		} else if f := file(t, fd); f == nil {
			s.Add(nil, 0, wait.Nval)
		} else {
			f = signalfd.As(t, f)
			s.Add(f, wait.Events(binary.LittleEndian.Uint16(p[4:])), 0)
		}
	}
	ready, e := s.Wait(&t.Ctx, limit.deadline, limit.poll)
	if e != 0 {
		return 0, e
	}
	for i := range n {
		binary.LittleEndian.PutUint16(b[i*linux.SizeofPollFd+6:], uint16(s.Got(i)))
	}
	if _, e := t.Mem.CopyOut(addr, b); e != 0 {
		return 0, e
	}
	return ready, 0
}

// sysSelect is select(int n, fd_set *in, *out, *ex, struct timeval *tv).
func sysSelect(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	limit := forever
	if a[4] != 0 {
		tv, e := readTimespec(t, a.Addr(4)) // of the same shape
		if e != 0 {
			return 0, e
		}
		ts := linux.Timespec{Sec: tv.Sec + tv.Nsec/1e6, Nsec: tv.Nsec % 1e6 * 1000}
		if tv.Sec < 0 || tv.Nsec < 0 || !ts.Valid() {
			return 0, linux.EINVAL
		}
		limit = limitIn(ts.Nano())
	}
	n, e := selectFiles(t, a, limit)
	return finishPoll(t, n, e, false, limit, a.Addr(4), 1000)
}

// sysPselect6 is pselect6(n, in, out, ex, struct timespec *ts, struct {sigset_t *mask; size} *sig).
func sysPselect6(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	var mask linux.SigSet
	var masked bool
	if a[5] != 0 {
		b, e := readUser(t, a.Addr(5), 16)
		if e != 0 {
			return 0, e
		}
		addr, size := binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])
		if mask, masked, e = readSigset(t, uio.Addr(addr), size); e != 0 {
			return 0, e
		}
	}
	limit, e := limitTimespec(t, a.Addr(4))
	if e != 0 {
		return 0, e
	}
	if masked {
		t.SetTempMask(mask)
	}
	n, e := selectFiles(t, a, limit)
	return finishPoll(t, n, e, masked, limit, a.Addr(4), 1)
}

// What select's three sets wait for: events that put a bit into the set.
var selectEvents = [3]wait.Events{
	wait.In | wait.RdNorm | wait.RdBand | wait.Hup | wait.Err | wait.Nval,
	wait.Out | wait.WrNorm | wait.WrBand | wait.Err | wait.Nval,
	wait.Pri | wait.Nval,
}

// leastTable is how many descriptors select looks at at least: the size of Linux's
// smallest table.
const leastTable = 64

// selectSets are the three sets of a select, which take its result in the end.
type selectSets struct {
	set   [3][]uint64
	words int
	small [3 * linux.FD_SETSIZE / 64]uint64
}

// selectFiles is the common part of select and pselect6.
func selectFiles(t *proc.Thread, a *Args, limit timeLimit) (int, linux.Errno) {
	n := int(a.Int(0))
	if n < 0 {
		return 0, linux.EINVAL
	}
	var x selectSets
	if e := x.read(t, a, min(n, max(t.FDs.Size(), leastTable))); e != 0 {
		return 0, e
	}
	count := 0
	for w := range x.words {
		count += bits.OnesCount64(x.wanted(w))
	}
	s, e := epoll.NewPollSet(t.Ctx.User(), count)
	if e != 0 {
		return 0, e
	}
	defer s.Free()
	if e := x.add(t, s); e != 0 {
		return 0, e
	}
	if _, e := s.Wait(&t.Ctx, limit.deadline, limit.poll); e != 0 {
		return 0, e
	}
	ready := x.take(s)
	for i := range x.set {
		if e := writeBits(t, a.Addr(1+i), x.set[i]); e != 0 {
			return 0, e
		}
	}
	return ready, 0
}

// wanted returns which descriptors of a word are in any set.
func (x *selectSets) wanted(w int) uint64 { return x.set[0][w] | x.set[1][w] | x.set[2][w] }

// read copies the sets in, of n descriptors.
func (x *selectSets) read(t *proc.Thread, a *Args, n int) linux.Errno {
	x.words = (n + 63) / 64
	sets := x.small[:]
	if 3*x.words > len(sets) {
		sets = make([]uint64, 3*x.words)
	}
	for i := range x.set {
		x.set[i] = sets[i*x.words : (i+1)*x.words]
		if e := readBits(t, a.Addr(1+i), x.set[i]); e != 0 {
			return e
		}
		if n%64 != 0 {
			x.set[i][x.words-1] &= 1<<(n%64) - 1
		}
	}
	return 0
}

// add puts the files of the sets into a set to wait for.
func (x *selectSets) add(t *proc.Thread, s *epoll.PollSet) linux.Errno {
	for w := range x.words {
		for m := x.wanted(w); m != 0; m &= m - 1 {
			bit := bits.TrailingZeros64(m)
			var want wait.Events
			for i := range x.set {
				if x.set[i][w]>>bit&1 != 0 {
					want |= selectEvents[i]
				}
			}
			f := t.FDs.Get(int32(w*64 + bit))
			if f == nil {
				return linux.EBADF
			}
			if f.IsPath() {
				f.Put()
				s.AddStrict(nil, 0, wait.Nval)
				continue
			}
			s.AddStrict(signalfd.As(t, f), want, 0)
		}
	}
	return 0
}

// take leaves in the sets what is ready, and counts it.
func (x *selectSets) take(s *epoll.PollSet) (ready int) {
	k := 0
	for w := range x.words {
		for m := x.wanted(w); m != 0; m &= m - 1 {
			bit := bits.TrailingZeros64(m)
			got := s.Got(k)
			k++
			for i := range x.set {
				if x.set[i][w]>>bit&1 == 0 {
					continue
				}
				if got&selectEvents[i] != 0 {
					ready++
				} else {
					x.set[i][w] &^= 1 << bit
				}
			}
		}
	}
	return ready
}

// readBits copies a bit set in; none at address 0.
func readBits(t *proc.Thread, addr uio.Addr, set []uint64) linux.Errno {
	if addr == 0 {
		return 0
	}
	for len(set) > 0 {
		k := min(len(set), len(t.Scratch)/8)
		b, e := readUser(t, addr, 8*k)
		if e != 0 {
			return e
		}
		for i := range k {
			set[i] = binary.LittleEndian.Uint64(b[8*i:])
		}
		set, addr = set[k:], addr+uio.Addr(8*k)
	}
	return 0
}

// writeBits copies a bit set out, nowhere at address 0.
func writeBits(t *proc.Thread, addr uio.Addr, set []uint64) linux.Errno {
	if addr == 0 {
		return 0
	}
	for len(set) > 0 {
		k := min(len(set), len(t.Scratch)/8)
		b := t.Scratch[:8*k]
		for i := range k {
			binary.LittleEndian.PutUint64(b[8*i:], set[i])
		}
		if _, e := t.Mem.CopyOut(addr, b); e != 0 {
			return e
		}
		set, addr = set[k:], addr+uio.Addr(8*k)
	}
	return 0
}
