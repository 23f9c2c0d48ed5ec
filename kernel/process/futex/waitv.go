package futex

//oops:stop a waiter that is gone would take others' wake-ups

import (
	"hardtack/abi/linux"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/base/wait"
)

// Word is one of the words that futex_waitv waits for.
type Word struct {
	Addr    uio.Addr
	Private bool
	Val     uint32
}

// WaitV is futex_waitv: it blocks until one of several words is woken, and returns
// which. The deadline is absolute: a restart needs no more than the same arguments.
func (t *Thread) WaitV(m Memory, words []Word, deadline int64) (int, linux.Errno) {
	s := &t.ctx.Sleeper
	ws := make([]waiter, len(words)) //maxlive:len 128 because futex_waitv takes at most as many
	// leave ends the wait of the first n and returns one that was woken, or -1.
	leave := func(n int) int {
		woken := -1
		for i := range ws[:n] {
			if !ws[i].leave() && woken < 0 {
				woken = i
			}
		}
		return woken
	}
	s.Arm()
	for i, x := range words {
		key, e := m.FutexKey(x.Addr, x.Private, false)
		if e == 0 {
			b := bucketOf(key)
			b.mu.Lock()
			var v uint32
			if v, e = m.LoadU32(x.Addr); e == 0 && v != x.Val {
				e = linux.EAGAIN
			}
			if e == 0 {
				ws[i].key, ws[i].bitset, ws[i].thread = key, linux.FUTEX_BITSET_MATCH_ANY, t
				b.add(&ws[i])
			}
			b.mu.Unlock()
		}
		if e != 0 {
			if woken := leave(i); woken >= 0 {
				return woken, 0 // somebody was woken before: that must not be lost
			}
			return 0, e
		}
	}
	for {
		r := s.Sleep(deadline)
		s.Arm()
		for i := range ws {
			if ws[i].bucket.Load() == nil {
				leave(len(ws))
				return i, 0
			}
		}
		if r == wait.Woken {
			continue
		}
		if woken := leave(len(ws)); woken >= 0 {
			return woken, 0
		}
		if r == wait.TimedOut {
			return 0, linux.ETIMEDOUT
		}
		return 0, linux.ERESTARTSYS
	}
}
