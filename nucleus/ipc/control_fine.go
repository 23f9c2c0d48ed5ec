//go:build nucleus_fine

package ipc

import (
	"fmt"

	"hardtack/lock"
)

const controlName = "fine"

// control fine: operations run beside each other, and lock the objects they touch.
// Making and destroying objects excludes all others.
type control struct{ readers lock.CoreReaders }

func (*control) works(cores int) error {
	if cores < 1 || cores > MaxCores {
		return fmt.Errorf("nucleus: %d cores: want 1 to %d", cores, MaxCores)
	}
	return nil
}

func (c *control) enter(core uint32) bool     { c.readers.RAcquire(core); return false }
func (c *control) leave(core uint32, in bool) { c.readers.RRelease(core) }
func (c *control) enterAlone(core uint32)     { c.readers.Acquire(core) }
func (c *control) leaveAlone(core uint32)     { c.readers.Release(core) }

type objectLock struct{ ticket lock.Ticket }

func (l *objectLock) acquire() { l.ticket.Spin() }
func (l *objectLock) release() { l.ticket.Release() }

func publish(w *where, v where) { lock.StoreRelease32((*uint32)(w), uint32(v)) }
