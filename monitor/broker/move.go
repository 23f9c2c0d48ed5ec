package broker

import (
	"context"
	"errors"
	"fmt"
)

// MoveCPUs has a cluster give n processors to another one, one after the other. It returns how
// many have moved.
func (b *Broker) MoveCPUs(ctx context.Context, n, from, to int) (moved int, err error) {
	if err := b.begin(ctx, n, from, to); err != nil {
		return 0, err
	}
	defer b.moves.Unlock()
	for ; moved < n && err == nil; moved++ {
		if err = b.moveCPU(ctx, from, to); err != nil {
			break
		}
	}
	return moved, err
}

// choose returns the processor that a cluster gives up: one that is the other's by the plan
// if it has one, and the last one else. mu is held.
func (b *Broker) choose(from, to int) (last *cpu) {
	for _, c := range b.cpus {
		if c.owner != from || c.apic == b.clusters[from].plan.APIC[0] {
			continue
		}
		if c.home == to {
			return c
		}
		if last == nil || c.home != from || last.home == from {
			last = c
		}
	}
	return last
}

// moveCPU moves one processor.
func (b *Broker) moveCPU(ctx context.Context, from, to int) error {
	b.mu.Lock()
	c := b.choose(from, to)
	giver, taker := b.clusters[from].kernel, b.clusters[to].kernel
	able := b.runs(from) && b.runs(to)
	b.mu.Unlock()
	switch {
	case !able:
		return ErrEnding
	case c == nil:
		return fmt.Errorf("cluster %d: %w", from, ErrLast)
	}
	limit, cancel, turn := b.next(ctx)
	err := giver.ReleaseCPU(limit, turn, c.apic)
	cancel()
	if err != nil {
		if isUnsure(err) {
			b.mu.Lock()
			b.clusters[from].doubtCPUs = append(b.clusters[from].doubtCPUs, c)
			b.mu.Unlock()
		}
		return fmt.Errorf("cluster %d: %w", from, err)
	}
	b.mu.Lock()
	if !b.runs(from) { // whoever stops it stops this processor, too
		b.mu.Unlock()
		return fmt.Errorf("cluster %d: %w", from, ErrEnding)
	}
	c.owner = nobody
	b.mu.Unlock()
	if err = b.deliver(c, to, taker); err == nil {
		return nil
	}
	if b.whose(c) == nobody && b.deliver(c, from, giver) != nil && b.whose(c) == nobody {
		b.park(c.apic)
	}
	return fmt.Errorf("cluster %d: %w", to, err)
}

func (b *Broker) whose(c *cpu) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return c.owner
}

// deliver gives a processor that is nobody's to a cluster.
func (b *Broker) deliver(c *cpu, to int, k Kernel) error {
	b.mu.Lock()
	if !b.runs(to) {
		b.mu.Unlock()
		return ErrEnding
	}
	c.owner, c.arriving = to, true
	b.mu.Unlock()
	return b.adoptCPU(k, c, false)
}

// adoptCPU has its owner by the book start a processor. If that is in doubt, the kernel may run
// it even if it refuses.
func (b *Broker) adoptCPU(k Kernel, c *cpu, doubt bool) error {
	limit, cancel, turn := b.next(context.Background()) // nobody who has had enough of waiting stops it halfway
	err := k.AdoptCPU(limit, turn, c.apic)
	cancel()
	b.mu.Lock()
	defer b.mu.Unlock()
	switch owner := b.clusters[c.owner]; {
	case err == nil:
		c.arriving = false
	case owner.ending: // whoever stops it stops this processor, too
	case doubt, isUnsure(err):
		owner.doubtCPUs = append(owner.doubtCPUs, c)
	default:
		c.owner, c.arriving = nobody, false
	}
	return err
}

func isUnsure(err error) bool {
	var u *Unsure
	return errors.As(err, &u)
}

// MoveMemory has a cluster give n pieces of memory to another one. It returns how many have
// moved.
func (b *Broker) MoveMemory(ctx context.Context, n, from, to int) (moved int, err error) {
	if err := b.begin(ctx, n, from, to); err != nil {
		return 0, err
	}
	defer b.moves.Unlock()
	for moved < n && err == nil {
		var some int
		some, err = b.movePieces(ctx, min(n-moved, MaxPieces), from, to)
		moved += some
	}
	return moved, err
}

// movePieces moves at most n pieces, in one go.
func (b *Broker) movePieces(ctx context.Context, n, from, to int) (int, error) {
	b.mu.Lock()
	giver, able := b.clusters[from].kernel, b.runs(from) && b.runs(to)
	b.mu.Unlock()
	if !able {
		return 0, ErrEnding
	}
	limit, cancel, turn := b.next(ctx)
	offered, err := giver.OfferMemory(limit, turn, n)
	cancel()
	if err == nil && (len(offered) > n || !b.owns(from, offered)) {
		err = errOffer
	}
	if offered = b.spare(from, offered); err == nil && len(offered) == 0 {
		err = ErrNoMemory
	}
	if err != nil {
		return 0, fmt.Errorf("cluster %d: %w", from, err)
	}
	limit, cancel, turn = b.next(ctx)
	released, err := giver.ReleaseMemory(limit, turn, offered)
	cancel()
	if err == nil && len(released) == 0 {
		err = ErrNoMemory
	}
	if err == nil && !within(released, offered) {
		err = &Unsure{errOffer}
	}
	if err != nil {
		if isUnsure(err) {
			b.mu.Lock()
			b.clusters[from].doubtPieces = append(b.clusters[from].doubtPieces, offered...)
			b.mu.Unlock()
		}
		return 0, fmt.Errorf("cluster %d: %w", from, err)
	}
	b.mu.Lock()
	for _, p := range released {
		b.set(p, nobody)
	}
	b.mu.Unlock()
	if err = b.adoptMemory(to, released, false); err == nil {
		return len(released), nil
	}
	if !isUnsure(err) {
		b.adoptMemory(from, released, false)
	}
	return 0, fmt.Errorf("cluster %d: %w", to, err)
}

// spare leaves out what a cluster needs to start again.
func (b *Broker) spare(index int, pieces []uint32) (list []uint32) {
	plan := b.clusters[index].plan // immutable
	for _, p := range pieces {
		if p < plan.Start || p >= plan.Start+plan.Least {
			list = append(list, p)
		}
	}
	return list
}

var errOffer = errors.New("the cluster offers what it has not")

// owns tells whether a cluster has all of the pieces, each named once.
func (b *Broker) owns(index int, pieces []uint32) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	seen := map[uint32]bool{}
	for _, p := range pieces {
		if seen[p] || b.has(p) != index {
			return false
		}
		seen[p] = true
	}
	return true
}

// within tells whether all of some pieces are among others, each named once.
func within(some, all []uint32) bool {
	left := map[uint32]bool{}
	for _, p := range all {
		left[p] = true
	}
	for _, p := range some {
		if !left[p] {
			return false
		}
		delete(left, p)
	}
	return true
}

// adoptMemory gives a cluster pieces that are nobody's, or of which it is in doubt whether they are
// its own already.
func (b *Broker) adoptMemory(to int, pieces []uint32, doubt bool) error {
	b.mu.Lock()
	k := b.clusters[to].kernel
	if !b.runs(to) {
		b.mu.Unlock()
		return ErrEnding
	}
	for _, p := range pieces {
		b.set(p, to)
	}
	b.mu.Unlock()
	limit, cancel, turn := b.next(context.Background())
	err := k.AdoptMemory(limit, turn, pieces)
	cancel()
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case err == nil:
	case doubt, isUnsure(err):
		b.clusters[to].doubtPieces = append(b.clusters[to].doubtPieces, pieces...)
	default:
		for _, p := range pieces {
			b.set(p, nobody)
		}
	}
	return err
}
