package nbd

import (
	"math/rand/v2"
	"slices"
)

// A recorded disk keeps every write and flush, and between them what the program in the
// guest noted: a note is what it writes to the disk "notes", anywhere. So it is known
// what the disk may hold if the power goes, and what it must hold.

// Event is a write, a flush or a note.
type Event struct {
	Off   int64
	Data  []byte // of a write or a note
	Flush bool
	Note  bool
}

const (
	notesSize = 1 << 20
	noteSize  = 64
)

// Record begins to keep events.
func (s *Server) Record() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.record = true
}

// Events are those so far.
func (s *Server) Events() []Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.events)
}

// keep records a request that was done; mu is held.
func (s *Server) keep(kind uint16, off uint64, b []byte) {
	if s.record && kind != cmdRead {
		s.events = append(s.events, Event{Off: int64(off), Data: slices.Clone(b), Flush: kind == cmdFlush})
	}
}

// note executes a request of the disk of notes.
func (s *Server) note(kind uint16, _ uint64, b []byte) uint32 {
	if kind == cmdWrite {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.events = append(s.events, Event{Data: slices.Clone(b[:min(len(b), noteSize)]), Note: true})
	}
	return 0
}

// Cutter makes disks as they may be when the power goes.
type Cutter struct {
	Disk   []byte // with every event before the last flush before at
	events []Event
	at     int
	rng    *rand.Rand
}

// NewCutter takes the disk as it was before the events.
func NewCutter(disk []byte, events []Event, seed uint64) *Cutter {
	return &Cutter{Disk: disk, events: events, rng: rand.New(rand.NewPCG(seed, 4))}
}

// Cut is the disk after the first n events: all before the last flush is there, and of
// what came later some writes or some sectors, in any order. n may not fall.
func (c *Cutter) Cut(n int) []byte {
	last := c.at
	for i := c.at; i < n; i++ {
		if c.events[i].Flush {
			last = i
		}
	}
	for ; c.at < last; c.at++ {
		apply(c.Disk, c.events[c.at])
	}
	d, loose := slices.Clone(c.Disk), slices.Clone(c.events[c.at:n])
	kind, odds := c.rng.IntN(3), 1+c.rng.IntN(4)
	if kind == 0 { // in order, up to some point
		loose = loose[:c.rng.IntN(len(loose)+1)]
	} else {
		c.rng.Shuffle(len(loose), func(i, j int) { loose[i], loose[j] = loose[j], loose[i] })
	}
	for _, e := range loose {
		switch {
		case kind == 2: // single sectors
			for i := 0; i+512 <= len(e.Data); i += 512 {
				if c.rng.IntN(odds) == 0 {
					apply(d, Event{Off: e.Off + int64(i), Data: e.Data[i : i+512], Note: e.Note})
				}
			}
		case kind == 0 || c.rng.IntN(odds) == 0:
			apply(d, e)
		}
	}
	return d
}

func apply(disk []byte, e Event) {
	if !e.Flush && !e.Note {
		copy(disk[e.Off:], e.Data)
	}
}
