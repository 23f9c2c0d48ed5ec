package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"hardtack/abi/boot"
	"hardtack/abi/linux"
	"hardtack/kernel/base/clocks"
	"hardtack/kernel/base/mem"
	"hardtack/monitor/broker"
	"hardtack/nucleus"
)

// estate is what this kernel gives and takes when processors and memory move between clusters:
// what the first cluster's broker asks for (broker.Kernel).
type estate struct {
	mu   sync.Mutex
	turn uint32 // of the last call; guarded by mu
}

// inTurn runs a call, unless a later one came before it.
func (e *estate) inTurn(turn uint32, call func() error) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if turn <= e.turn {
		return broker.ErrStale
	}
	e.turn = turn
	return call()
}

// ReleaseCPU implements broker.Kernel.
func (e *estate) ReleaseCPU(_ context.Context, turn, apic uint32) error {
	return e.inTurn(turn, func() error {
		err := releaseProcessor(apic)
		if errors.Is(err, linux.EBUSY) {
			err = broker.ErrKept
		}
		return err
	})
}

// AdoptCPU implements broker.Kernel.
func (e *estate) AdoptCPU(_ context.Context, turn, apic uint32) error {
	return e.inTurn(turn, func() error {
		if err := adoptProcessor(apic); err != nil {
			return fmt.Errorf("%w: %w", broker.ErrAbsent, err)
		}
		return nil
	})
}

// moves are the last moves that somebody asked for, and how they went.
type moves struct {
	mu   sync.Mutex
	last []string // guarded by mu
}

const lastMoves = 16

func (m *moves) add(line string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.last = append(m.last[max(0, len(m.last)-lastMoves+1):], line)
}

// text is /proc/hardtack/moves.
func (m *moves) text() []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	return []byte(strings.Join(m.last, ""))
}

// move is a request to move processors or memory: what, how much, from and to. It returns when
// that is done, and how it went is in /proc/hardtack/moves, too.
func (s *others) move(words []string) linux.Errno {
	from, err := strconv.Atoi(words[2])
	to, err2 := strconv.Atoi(words[3])
	if err != nil || err2 != nil {
		return linux.EINVAL
	}
	began, moved := clocks.Monotonic(), 0
	switch words[0] {
	case "cores":
		n, bad := strconv.Atoi(words[1])
		if bad != nil {
			return linux.EINVAL
		}
		moved, err = s.broker.MoveCPUs(context.Background(), n, from, to)
	case "memory":
		n, ok := pieces(words[1])
		if !ok {
			return linux.EINVAL
		}
		moved, err = s.broker.MoveMemory(context.Background(), n, from, to)
		moved *= broker.PieceSize >> 20
	default:
		return linux.EINVAL
	}
	how := "done"
	if err != nil {
		how = err.Error()
	}
	s.moves.add(fmt.Sprintf("%s moved %d ns %d: %s\n", strings.Join(words, " "), moved, clocks.Monotonic()-began, how))
	return moveErrno(err)
}

// pieces is how many of memory a number of bytes is, with a unit or without: whole ones.
func pieces(text string) (n int, ok bool) {
	number, unit := text, int64(1)
	if i := len(text) - 1; i > 0 {
		if shift := strings.IndexByte("KMGT", text[i]&^0x20); shift >= 0 {
			number, unit = text[:i], 1<<(10*(shift+1))
		}
	}
	v, err := strconv.ParseInt(number, 10, 32)
	if err != nil || v < 1 || v*unit%broker.PieceSize != 0 {
		return 0, false
	}
	return int(v * unit / broker.PieceSize), true
}

// moveErrno is how a write tells what kept a move from being made, or made whole.
func moveErrno(err error) linux.Errno {
	for _, e := range []struct {
		err error
		no  linux.Errno
	}{
		{nil, 0}, {broker.ErrBusy, linux.EBUSY}, {broker.ErrNotRunning, linux.ENODEV}, {broker.ErrEnding, linux.ESHUTDOWN},
		{broker.ErrLast, linux.ERANGE}, {broker.ErrNoMemory, linux.ENOMEM}, {broker.ErrSame, linux.EINVAL},
		{broker.ErrNoCluster, linux.EINVAL}, {broker.ErrNothing, linux.EINVAL}, {context.DeadlineExceeded, linux.ETIMEDOUT},
	} {
		if errors.Is(err, e.err) {
			return e.no
		}
	}
	return linux.EIO
}

// OfferMemory implements broker.Kernel.
func (e *estate) OfferMemory(_ context.Context, _ uint32, most int) ([]uint32, error) {
	return nucleus.OfferPieces(most), nil
}

// ReleaseMemory implements broker.Kernel.
func (e *estate) ReleaseMemory(_ context.Context, turn uint32, pieces []uint32) (released []uint32, err error) {
	err = e.inTurn(turn, func() error {
		released = nucleus.ReleasePieces(pieces)
		memoryMoved(-len(released))
		return nil
	})
	return released, err
}

// AdoptMemory implements broker.Kernel.
func (e *estate) AdoptMemory(_ context.Context, turn uint32, pieces []uint32) error {
	return e.inTurn(turn, func() error {
		before := nucleus.MemoryInfo().Total
		if !nucleus.AdoptPieces(pieces) {
			return broker.ErrFull
		}
		memoryMoved((nucleus.MemoryInfo().Total - before) / nucleus.PieceFrames)
		return nil
	})
}

// memoryMoved has what is a share of memory follow.
func memoryMoved(pieces int) {
	if pieces != 0 {
		mem.Moved(pieces * nucleus.PieceFrames)
		limitHeap()
	}
}

// ranges are the runs of memory that pieces are, in order; the shortest are left out if there are
// too many.
func ranges(pieces []uint32) (list []nucleus.Range) {
	for _, p := range pieces {
		start := uint64(p) * broker.PieceSize
		if n := len(list); n > 0 && list[n-1].End == start {
			list[n-1].End += broker.PieceSize
		} else {
			list = append(list, nucleus.Range{Start: start, End: start + broker.PieceSize})
		}
	}
	for len(list) > boot.MaxRuns {
		least := 1 // the first one must stay
		for i := range list[1:] {
			if list[i+1].End-list[i+1].Start < list[least].End-list[least].Start {
				least = i + 1
			}
		}
		list = slices.Delete(list, least, least+1)
	}
	return list
}
