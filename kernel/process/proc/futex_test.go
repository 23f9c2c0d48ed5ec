package proc

import (
	"testing"

	"hardtack/abi/linux"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/base/wait"
)

// Robust lists and clear_child_tid tell the waiters of a dying thread.
func TestThreadDeathWakes(t *testing.T) {
	asInit(func(c *Thread) {
		pid := c.spawn(t, fork, func(c *Thread) {
			p := c.page(t, 4096)
			const head, lock, clear = 0, 64, 128
			store := func(off, v uint64) { c.Space.StoreU64(uio.Addr(p+off), v) }
			store(head, p+lock) // one entry, whose next is the head
			store(lock, p+head)
			store(head+8, 8) // the lock word is 8 behind the entry
			gate := make(chan bool)
			tid := c.spawn(t, CloneArgs{Flags: threadFlags, Stack: 4096}, func(c *Thread) {
				c.Futex.RobustList = p + head
				c.Futex.ClearTID = p + clear
				<-gate
			})
			word := uint32(tid) | linux.FUTEX_WAITERS
			c.Space.StoreU32(uio.Addr(p+lock+8), word)
			c.Space.StoreU32(uio.Addr(p+clear), uint32(tid))
			close(gate)
			if e := c.Futex.Wait(c.Space, uio.Addr(p+lock+8), false, word, linux.FUTEX_BITSET_MATCH_ANY, wait.Now()+60e9); e != 0 && e != linux.EAGAIN {
				t.Error(e)
			}
			if v, _ := c.Space.LoadU32(uio.Addr(p + lock + 8)); v != linux.FUTEX_WAITERS|linux.FUTEX_OWNER_DIED {
				t.Errorf("lock word %#x", v)
			}
			if e := c.Futex.Wait(c.Space, uio.Addr(p+clear), false, uint32(tid), linux.FUTEX_BITSET_MATCH_ANY, wait.Now()+60e9); e != 0 && e != linux.EAGAIN {
				t.Error(e)
			}
			if v, _ := c.Space.LoadU32(uio.Addr(p + clear)); v != 0 {
				t.Errorf("clear_child_tid %#x", v)
			}
			// A list in circles ends, too.
			store(lock, p+lock)
			c.Futex.RobustList = p + head
		})
		c.waitFor(t, pid)
	})
}
