// Package random is the kernel's source of random numbers, for getrandom, /dev/random and
// the kernel's own unpredictable values (addresses, ports, sequence numbers).
//
// It is a ChaCha8 generator. Each piece of entropy is mixed with the old stream into a
// new key, so no piece can weaken the key. The pool is ready after 256 bits of entropy;
// until then the bytes of Read may be predictable.
//
// Locks: pool.mu is a leaf.
package random

import (
	"crypto/sha256"
	"encoding/binary"
	"math/bits"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/wait"
)

// readyBits is how much entropy makes the pool ready.
const readyBits = 256

var pool = struct {
	mu  sync.Mutex
	gen *rand.ChaCha8 // guarded by mu

	stirred int64 // when entropy came last, or was asked for; guarded by mu

	credit atomic.Int64 // bits of entropy so far, up to readyBits
	queue  wait.Queue   // who waits for the pool to be ready
}{gen: rand.NewChaCha8([32]byte{})}

// maxAge is how old entropy gets before bytes that are read ask for more.
const maxAge = int64(5 * time.Minute)

// Stale gets an element when more is asked for. Nobody waits on a timer for that: one
// that is set makes the scheduler read the clock at each switch.
var Stale = make(chan struct{}, 1)

// Stir adds entropy that is worth so many bits: 0 where somebody may know it.
func Stir(b []byte, worth int) {
	pool.mu.Lock()
	h := sha256.New()
	var key [32]byte
	_, _ = pool.gen.Read(key[:])
	h.Write(key[:])
	h.Write(b)
	h.Sum(key[:0])
	pool.gen.Seed(key)
	clear(key[:])
	pool.stirred = wait.Now()
	pool.mu.Unlock()
	if worth > 0 && pool.credit.Load() < readyBits && pool.credit.Add(int64(worth)) >= readyBits {
		pool.queue.Notify(wait.In)
	}
}

// Ready reports whether nobody can guess what Read gives.
func Ready() bool { return pool.credit.Load() >= readyBits }

// Read fills b. It never waits.
func Read(b []byte) {
	pool.mu.Lock()
	_, _ = pool.gen.Read(b)
	now := wait.Now()
	stale := now-pool.stirred > maxAge
	if stale {
		pool.stirred = now
	}
	pool.mu.Unlock()
	if stale {
		select {
		case Stale <- struct{}{}:
		default:
		}
	}
}

// Reader is Read as an io.Reader.
type Reader struct{}

func (Reader) Read(b []byte) (int, error) {
	Read(b)
	return len(b), nil
}

// Uint64 returns a random number.
func Uint64() uint64 {
	var b [8]byte
	Read(b[:])
	return binary.LittleEndian.Uint64(b[:])
}

// Uint64N returns a random number below n, which is not 0.
func Uint64N(n uint64) uint64 {
	// The upper half of a product is as good as even: n is far below 1<<64.
	hi, _ := bits.Mul64(Uint64(), n)
	return hi
}

// Await waits until the pool is ready; ERESTARTSYS after a signal.
func Await(c *caller.Ctx) linux.Errno {
	if Ready() {
		return 0
	}
	pool.queue.Add(&c.Entry, &c.Sleeper, wait.In)
	defer pool.queue.Remove(&c.Entry)
	for {
		c.Arm()
		if Ready() {
			return 0
		}
		if c.Sleep(wait.NoDeadline) == wait.Interrupted {
			return linux.ERESTARTSYS
		}
	}
}
