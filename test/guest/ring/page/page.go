// Package page is what the two sides of TestRing share: a page of the guest's memory,
// with a virtqueue at its start and some words behind that.
package page

import (
	"sync/atomic"
)

// QueueSize is how many descriptors the queue has.
const QueueSize = 16

// Size is the page's; the magic number in it, by which the host finds it in the
// machine's memory, has MagicSize bytes at MagicAt.
const (
	Size      = 4096
	MagicAt   = 2048
	MagicSize = 16

	wordsAt = MagicAt + 64
)

// Words are what the sides tell each other beside the queue. Each has a cache line of
// its own.
type Words struct {
	Notified  Word // by the driver: notifications
	Decided   Word // by the driver: requests that it has notified of, or need not
	Interrupt Word // by the device: interrupts
	Completed Word // by the device: completions that it has interrupted for, or need not
	Stop      Word // by the device: the driver ends
}

// Word is a number alone in its cache line.
type Word struct {
	atomic.Uint32
	_ [60]byte
}
