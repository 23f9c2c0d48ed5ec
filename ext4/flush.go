package ext4

import "sync/atomic"

// flushCount numbers the flushes of commits, one at a time. A caller that joins a commit
// can thus tell whether the flush came after its own writes in place.
type flushCount struct{ begun, done atomic.Uint64 }

// run flushes a device, one flush at a time.
func (c *flushCount) run(dev BlockDevice) error {
	n := c.begun.Add(1)
	err := dev.Flush()
	if err == nil {
		c.done.Store(n)
	}
	return err
}

// wrote records a write in place that has just ended: the next flush covers it.
func (c *flushCount) wrote(at *atomic.Uint64) { at.Store(c.begun.Load() + 1) }

// covers reports whether a flush has covered what was noted.
func (c *flushCount) covers(at *atomic.Uint64) bool { return at.Load() <= c.done.Load() }
