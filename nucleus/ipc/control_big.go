//go:build !nucleus_none && !nucleus_fine && !nucleus_rtm

package ipc

import (
	"fmt"

	"hardtack/lock"
)

const controlName = "big"

// control big: one operation at a time.
type control struct{ queue lock.CoreQueue }

func (*control) works(cores int) error {
	if cores < 1 || cores > MaxCores {
		return fmt.Errorf("nucleus: %d cores: want 1 to %d", cores, MaxCores)
	}
	return nil
}

func (c *control) enter(core uint32) bool     { c.queue.Acquire(core); return false }
func (c *control) leave(core uint32, in bool) { c.queue.Release(core) }
func (c *control) enterAlone(core uint32)     { c.queue.Acquire(core) }
func (c *control) leaveAlone(core uint32)     { c.queue.Release(core) }

type objectLock struct{}

func (*objectLock) acquire() {}
func (*objectLock) release() {}

func publish(w *where, v where) { *w = v }
