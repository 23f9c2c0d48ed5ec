//go:build lockcheck

package lock

import (
	"bytes"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"sync"
)

// Checker gives a lock its place in the order of locks; see the package comment.
type Checker struct {
	rank int
	name string
}

// SetRank says that while the lock is held only locks of this rank or a higher one
// may be taken. The name is for messages. To be called before the lock is used.
func (c *Checker) SetRank(rank int, name string) { c.rank, c.name = rank, name }

// held is what each goroutine has locked, in this order.
var held = struct {
	sync.Mutex
	by map[int64][]*Checker
}{by: map[int64][]*Checker{}}

func (c *Checker) String() string {
	name := c.name
	if name == "" {
		name = "lock"
	}
	return fmt.Sprintf("%s (rank %d, %p)", name, c.rank, c)
}

// before checks that the goroutine may wait for the lock.
func (c *Checker) before() {
	g := goroutine()
	held.Lock()
	defer held.Unlock()
	for _, h := range held.by[g] {
		switch {
		case h == c:
			panic(fmt.Sprintf("lock: goroutine %d locks %v, which it holds", g, c))
		case h.rank == 0 || c.rank == 0:
		case h.rank > c.rank:
			panic(fmt.Sprintf("lock: goroutine %d locks %v while it holds %v", g, c, h))
		case h.rank == c.rank && address(h) > address(c):
			panic(fmt.Sprintf("lock: goroutine %d locks %v after %v of the same rank: want ascending addresses", g, c, h))
		}
	}
}

func (c *Checker) acquired() {
	g := goroutine()
	held.Lock()
	held.by[g] = append(held.by[g], c)
	held.Unlock()
}

// released checks that the goroutine holds the lock.
func (c *Checker) released() {
	g := goroutine()
	held.Lock()
	defer held.Unlock()
	mine := held.by[g]
	i := slices.Index(mine, c)
	if i < 0 {
		panic(fmt.Sprintf("lock: goroutine %d unlocks %v, which it does not hold", g, c))
	}
	if mine = slices.Delete(mine, i, i+1); len(mine) == 0 {
		delete(held.by, g)
	} else {
		held.by[g] = mine
	}
}

// goroutine is the number of the caller's goroutine, which Go tells only in text.
func goroutine() int64 {
	var buf [64]byte
	text := buf[:runtime.Stack(buf[:], false)]
	text = bytes.TrimPrefix(text, []byte("goroutine "))
	if i := bytes.IndexByte(text, ' '); i > 0 {
		if n, err := strconv.ParseInt(string(text[:i]), 10, 64); err == nil {
			return n
		}
	}
	panic("lock: a stack without the goroutine's number")
}
