package ump

import (
	"math"
	"os"
	"runtime"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"hardtack/msg"
	"hardtack/msg/internal/ring"
)

// Where memory lies decides how long a cache line takes from one core to
// another: in which slice of a shared cache, on which socket. Nobody says where
// a page is, so some pairs of rings are timed, between two threads of this
// process, and the fastest is kept.

const (
	placeTrips  = 100                  // round trips at a time
	placeRounds = 3                    // how often each pair of rings is timed
	placeTime   = 4 * time.Millisecond // for all; what was timed by then decides
)

// place makes the memory of a link, mapped.
func place(r msg.Rings) (*os.File, *mapping, error) {
	n := 2 * r.Pages * pageBytes
	var files []*os.File
	var maps []*mapping
	for range max(r.Try, 1) {
		f, err := newMemory(n)
		if err == nil {
			var m *mapping
			if m, err = mapFile(f, n, unix.PROT_READ|unix.PROT_WRITE); err == nil {
				files, maps = append(files, f), append(maps, m)
				continue
			}
			f.Close()
		}
		if len(files) == 0 {
			return nil, nil, err
		}
		break // fewer will do
	}
	best := 0
	if len(maps) > 1 {
		best = fastest(maps)
	}
	for i := range files {
		if i != best {
			files[i].Close()
			maps[i].free()
		}
	}
	return files[best], maps[best], nil
}

// fastest times all and returns the index of the best, zeroed again.
func fastest(all []*mapping) (best int) {
	if runtime.GOMAXPROCS(0) < 2 {
		return 0
	}
	var stop atomic.Bool
	limit := time.AfterFunc(placeTime, func() { stop.Store(true) })
	defer limit.Stop()
	near, far := make([]side, len(all)), make([]side, len(all))
	for i, m := range all {
		half := len(m.mem) / 2
		near[i].open(m.mem[:half], m.mem[half:])
		far[i].open(m.mem[half:], m.mem[:half])
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range placeRounds {
			for i := range far {
				for range placeTrips {
					if !far[i].recv(&stop) {
						return
					}
					far[i].send()
				}
			}
		}
	}()
	least := time.Duration(math.MaxInt64)
	for range placeRounds {
		for i := range near {
			start := time.Now()
			for range placeTrips {
				near[i].send()
				if !near[i].recv(&stop) {
					break
				}
			}
			if d := time.Since(start); !stop.Load() && d < least {
				least, best = d, i
			}
		}
	}
	<-done
	clear(all[best].mem)
	return best
}

// side is one end of a pair of rings on which one message is under way.
type side struct {
	tx *ring.Tx
	rx *ring.Rx
}

func (s *side) open(tx, rx []byte) { s.tx, s.rx, _ = ring.Open(tx, rx) } // the sizes are right

func (s *side) send() {
	if s.tx.Room == 0 {
		s.tx.Refill()
	}
	if s.tx.Room > 0 {
		s.tx.Publish(1, 0, 0)
	}
}

// recv waits for a message, until stop.
func (s *side) recv(stop *atomic.Bool) bool {
	for !s.rx.Ready() {
		if stop.Load() {
			return false
		}
	}
	h, _ := s.rx.Peek()
	s.rx.Consume(h)
	return true
}
