package sysctl

import (
	"sync/atomic"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/wait"
)

// Polled is a value whose changes poll tells of.
type Polled interface {
	// Changes returns how often it changed.
	Changes() uint64
	Queue() *wait.Queue
}

// Event counts the changes of a value and announces them.
type Event struct {
	queue wait.Queue
	n     atomic.Uint64
}

// Happened notes a change.
func (e *Event) Happened() {
	e.n.Add(1)
	e.queue.Notify(wait.Err | wait.Pri)
}

type polledWord struct {
	word
	*Event
}

// Changes returns how often the text changed.
func (w *polledWord) Changes() uint64 { return w.n.Load() }

// Queue is where changes are announced.
func (w *polledWord) Queue() *wait.Queue { return &w.queue }

// PolledText is Text whose changes e tells of.
func PolledText(name string, most int, e *Event, get func() string, set func(c *caller.Ctx, s string) linux.Errno) File {
	return File{Name: name, Mode: 0o644, Value: &polledWord{word{most, get, set}, e}}
}
