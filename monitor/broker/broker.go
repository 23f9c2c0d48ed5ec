// Package broker keeps the first cluster's book of which cluster of a machine has which
// processors and which memory, and moves them between clusters.
//
// # A move
//
// The one cluster's kernel gives something up (Release), and then the other one takes it
// (Adopt). In between it is nobody's. Everything is named in the calls, by local APIC ID or
// number of a piece of memory, so that a call whose answer was lost may be made again: to give
// up what one has not, and to take what one has, is no error. Each call has a number, the turn,
// and a kernel refuses those that are older than one it has seen.
//
// After a call without an answer the book says that the cluster has what it may have. It is
// asked to take that once more before the next move that it is part of.
//
// # Ends
//
// A cluster that ends loses what it has: its processors are stopped by the caller. What it had
// by the plan waits for its next start. What was another's by the plan goes back there, at once
// if that cluster runs, else with its next start. What it had lent stays where it is: a running
// kernel is never made to give anything up.
//
// # Lock order
//
// Broker.moves, held for a whole move, then Broker.mu. No call is made with mu held.
package broker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Kernel is what the broker asks of a cluster's kernel. An error is a refusal, after which all
// is as before, unless it is an Unsure.
type Kernel interface {
	// ReleaseCPU has the kernel stop using a processor; it is parked then.
	ReleaseCPU(ctx context.Context, turn, apic uint32) error
	// AdoptCPU has it start a processor.
	AdoptCPU(ctx context.Context, turn, apic uint32) error
	// OfferMemory returns at most so many pieces that it could give up.
	OfferMemory(ctx context.Context, turn uint32, most int) (pieces []uint32, err error)
	// ReleaseMemory has it unmap those of the pieces that are still free, and returns them.
	ReleaseMemory(ctx context.Context, turn uint32, pieces []uint32) (released []uint32, err error)
	// AdoptMemory has it use all of the pieces.
	AdoptMemory(ctx context.Context, turn uint32, pieces []uint32) error
}

// Unsure is the error of a call that may or may not have been carried out.
type Unsure struct{ Err error }

func (e *Unsure) Error() string { return e.Err.Error() }

// Unwrap returns why the call failed.
func (e *Unsure) Unwrap() error { return e.Err }

// Errors of requests.
var (
	ErrBusy       = errors.New("another move is under way")
	ErrSame       = errors.New("a cluster gives itself nothing")
	ErrNoCluster  = errors.New("there is no such cluster")
	ErrNotRunning = errors.New("the cluster does not run")
	ErrEnding     = errors.New("the cluster is ending")
	ErrLast       = errors.New("the cluster has no processor to give but its first")
	ErrNoMemory   = errors.New("the cluster has no whole pieces of free memory left to give")
	ErrNothing    = errors.New("nothing to move")
)

// Errors of kernels, after which all is as before.
var (
	ErrKept   = errors.New("the cluster keeps its first processor")
	ErrAbsent = errors.New("the processor does not start")
	ErrFull   = errors.New("there is no room for that")
	ErrStale  = errors.New("a later call has come")
	ErrFailed = errors.New("the kernel could not do it")
)

// Memory moves by pieces of 2 MiB, of which a call names 64 at most. Piece n begins at n times
// 2 MiB.
const (
	PieceSize = 2 << 20
	MaxPieces = 64
)

// A Plan is what a cluster has by the plan. The memory of the first one is all the rest.
type Plan struct {
	APIC       []uint32 // local APIC IDs of its processors, the first of which it keeps
	Start, End uint32   // its pieces of memory
	Least      uint32   // of those, it keeps so many first ones, to start with
}

// nobody has what is parked, or what no kernel maps.
const nobody = -1

// Broker is the book.
type Broker struct {
	park  func(apic uint32) // has a processor that is nobody's wait where no kernel's memory matters
	moves sync.Mutex        // one move at a time
	turn  uint32            // of the last call; guarded by moves

	mu       sync.Mutex
	clusters []*cluster     // guarded by mu, as all below
	cpus     []*cpu         // in the order of the plans
	lent     map[uint32]int // who has a piece of memory that is not where the plan says
}

type cluster struct {
	plan    Plan
	started bool   // and it has not ended
	kernel  Kernel // nil: it does not run, or cannot be called yet
	ending  bool

	// What it may lack of what it has by the book: the answers of calls were lost.
	doubtCPUs   []*cpu
	doubtPieces []uint32
}

type cpu struct {
	apic     uint32
	home     int // whose it is by the plan
	owner    int // who has it, or nobody
	arriving bool
}

// New makes the book of a machine in which each cluster has what is its own by the plan, and
// the first one runs.
func New(plans []Plan, first Kernel, park func(apic uint32)) *Broker {
	b := &Broker{park: park, lent: map[uint32]int{}}
	for i, p := range plans {
		b.clusters = append(b.clusters, &cluster{plan: p})
		for _, id := range p.APIC {
			b.cpus = append(b.cpus, &cpu{apic: id, home: i, owner: i})
		}
	}
	b.clusters[0].kernel = first
	return b
}

// Start returns what a cluster that is about to start has of its plan, its first processor
// first.
func (b *Broker) Start(index int) (apic []uint32, pieces []uint32) {
	b.mu.Lock()
	defer b.mu.Unlock()
	k := b.clusters[index]
	k.started, k.ending, k.doubtCPUs, k.doubtPieces = true, false, nil, nil
	for _, c := range b.cpus {
		if c.home == index && (c.owner == index || c.owner == nobody) {
			c.owner, c.arriving = index, false
			apic = append(apic, c.apic)
		}
	}
	for p := k.plan.Start; p < k.plan.End; p++ {
		if owner, moved := b.lent[p]; !moved || owner == nobody {
			delete(b.lent, p)
			pieces = append(pieces, p)
		}
	}
	return apic, pieces
}

// Joined says that a cluster's kernel can be called. It gets what is its own by the plan and
// came back since its start.
func (b *Broker) Joined(index int, k Kernel) {
	b.mu.Lock()
	c := b.clusters[index]
	if !c.started || c.ending {
		b.mu.Unlock()
		return
	}
	c.kernel = k
	b.mu.Unlock()
	b.moves.Lock()
	defer b.moves.Unlock()
	b.bringHome(func(home int) bool { return home == index })
}

// Ending says that a cluster is to be stopped, and returns the processors to stop: those that
// run there, and those that the kernel may be starting.
func (b *Broker) Ending(index int) (running, arriving []uint32) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.clusters[index].ending = true
	for _, c := range b.cpus {
		switch {
		case c.owner != index:
		case c.arriving:
			arriving = append(arriving, c.apic)
		default:
			running = append(running, c.apic)
		}
	}
	return running, arriving
}

// Ended says that a cluster's processors have stopped and that calls to it fail.
func (b *Broker) Ended(index int) {
	b.moves.Lock() // the last of those calls has
	defer b.moves.Unlock()
	b.mu.Lock()
	k := b.clusters[index]
	k.started, k.ending, k.kernel = false, false, nil
	for _, c := range b.cpus {
		if c.owner == index {
			c.owner, c.arriving = nobody, false
		}
	}
	for p, owner := range b.lent {
		if owner == index {
			b.lent[p] = nobody
		}
	}
	b.mu.Unlock()
	b.bringHome(func(home int) bool { return home != index })
}

// bringHome gives those clusters that run what is nobody's and theirs by the plan.
func (b *Broker) bringHome(which func(home int) bool) {
	for {
		b.mu.Lock()
		var c *cpu
		for _, x := range b.cpus {
			if x.owner == nobody && which(x.home) && b.runs(x.home) {
				c = x
				break
			}
		}
		if c == nil {
			b.mu.Unlock()
			break
		}
		k := b.clusters[c.home].kernel
		c.owner, c.arriving = c.home, true
		b.mu.Unlock()
		b.adoptCPU(k, c, false)
		if c.owner == nobody {
			break // it does not want it
		}
	}
	b.mu.Lock()
	pieces := map[int][]uint32{}
	for p, owner := range b.lent {
		if home := b.home(p); owner == nobody && which(home) && b.runs(home) {
			pieces[home] = append(pieces[home], p)
		}
	}
	b.mu.Unlock()
	for home, list := range pieces {
		slices.Sort(list)
		for part := range slices.Chunk(list, MaxPieces) {
			b.adoptMemory(home, part, false)
		}
	}
}

// runs tells whether a cluster can be called; mu is held.
func (b *Broker) runs(index int) bool {
	k := b.clusters[index]
	return k.kernel != nil && !k.ending
}

// home is whose a piece is by the plan; mu is held.
func (b *Broker) home(piece uint32) int {
	for i, k := range b.clusters[1:] {
		if piece >= k.plan.Start && piece < k.plan.End {
			return i + 1
		}
	}
	return 0
}

// has is who has a piece; mu is held.
func (b *Broker) has(piece uint32) int {
	if owner, moved := b.lent[piece]; moved {
		return owner
	}
	return b.home(piece)
}

// set notes who has a piece; mu is held.
func (b *Broker) set(piece uint32, owner int) {
	if owner == b.home(piece) {
		delete(b.lent, piece)
	} else {
		b.lent[piece] = owner
	}
}

// CPUs returns how many processors a cluster has.
func (b *Broker) CPUs(index int) (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range b.cpus {
		if c.owner == index {
			n++
		}
	}
	return n
}

// Borrowed returns how many pieces of memory a cluster has more than by the plan; less than
// none if it has lent some.
func (b *Broker) Borrowed(index int) (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for p, owner := range b.lent {
		if owner == index {
			n++
		}
		if b.home(p) == index {
			n--
		}
	}
	return n
}

// callTime bounds a call.
const callTime = 30 * time.Second

// next numbers a call and bounds it; moves is held.
func (b *Broker) next(ctx context.Context) (context.Context, context.CancelFunc, uint32) {
	b.turn++
	ctx, cancel := context.WithTimeout(ctx, callTime)
	return ctx, cancel, b.turn
}

// begin checks a request and begins the move; the caller ends it by unlocking moves.
func (b *Broker) begin(ctx context.Context, n, from, to int) error {
	switch {
	case n < 1:
		return ErrNothing
	case from == to:
		return ErrSame
	case from < 0 || to < 0 || from >= len(b.clusters) || to >= len(b.clusters):
		return ErrNoCluster
	}
	if !b.moves.TryLock() {
		return ErrBusy
	}
	for _, i := range []int{from, to} {
		if err := b.able(i); err != nil {
			b.moves.Unlock()
			return err
		}
		b.settle(i)
	}
	b.bringHome(func(int) bool { return true }) // what was refused before
	return nil
}

// able says whether a cluster can take part in a move.
func (b *Broker) able(index int) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch k := b.clusters[index]; {
	case k.ending:
		return fmt.Errorf("cluster %d: %w", index, ErrEnding)
	case k.kernel == nil:
		return fmt.Errorf("cluster %d: %w", index, ErrNotRunning)
	}
	return nil
}

// settle asks a cluster to take once more what it may lack.
func (b *Broker) settle(index int) {
	b.mu.Lock()
	k := b.clusters[index]
	kernel, cpus, pieces := k.kernel, k.doubtCPUs, k.doubtPieces
	k.doubtCPUs, k.doubtPieces = nil, nil
	b.mu.Unlock()
	for _, c := range cpus {
		if b.whose(c) == index {
			b.adoptCPU(kernel, c, true)
		}
	}
	for _, p := range pieces { // one by one: it may have some of them
		if b.owns(index, []uint32{p}) {
			b.adoptMemory(index, []uint32{p}, true)
		}
	}
}
