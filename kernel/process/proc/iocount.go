package proc

import "hardtack/kernel/base/wait"

// IOCount is what calls that read and write have moved, how many there were, and what
// was read from disks and has to be written to them (/proc/PID/io).
type IOCount struct {
	Read, Written, Reads, Writes uint64

	Disk wait.Disk // of a thread that has ended; see Thread.IOCount
}

// NoteRead counts a call that read n bytes.
func (c *IOCount) NoteRead(n int) {
	c.Read += uint64(n)
	c.Reads++
}

// NoteWrite counts a call that wrote n bytes.
func (c *IOCount) NoteWrite(n int) {
	c.Written += uint64(n)
	c.Writes++
}

func (c *IOCount) add(o IOCount) {
	c.Read += o.Read
	c.Written += o.Written
	c.Reads += o.Reads
	c.Writes += o.Writes
	c.Disk.Read += o.Disk.Read
	c.Disk.Written += o.Disk.Written
}

// ioCount is what the thread has moved; called with Proc.mu held.
func (t *Thread) ioCount() IOCount {
	n := t.IO
	if t.startTicks == 0 || t.State() >= StateZombie {
		return n
	}
	n.Disk = t.clock.Since(t.diskBase, t.disk)
	return n
}

// IOCount returns what the thread has moved.
func (t *Thread) IOCount() IOCount {
	t.Proc.mu.Lock()
	defer t.Proc.mu.Unlock()
	return t.ioCount()
}

// IOCount returns what all threads have moved, with those that ended.
func (g *threadGroup) IOCount() IOCount {
	g.mu.Lock()
	defer g.mu.Unlock()
	sum := g.deadIO
	for _, t := range g.threads {
		sum.add(t.ioCount())
	}
	return sum
}
