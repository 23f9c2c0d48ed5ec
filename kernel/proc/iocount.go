package proc

// IOCount is what calls that read and write have moved, and how many there were
// (/proc/PID/io).
type IOCount struct{ Read, Written, Reads, Writes uint64 }

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
}

// IOCount returns what all threads have moved, with those that ended.
func (p *Process) IOCount() IOCount {
	p.mu.Lock()
	defer p.mu.Unlock()
	sum := p.deadIO
	for _, t := range p.threads {
		sum.add(t.IO)
	}
	return sum
}
