package proc

// zombies are the ended children of a process, so that wait finds one among thousands
// that live: a heap with the child on top that has been its parent's for longest, which
// is the one that Linux reports. Guarded by treeMu.
type zombies []*Process

// push adds a child.
func (z *zombies) push(c *Process) {
	*z = append(*z, c)
	z.up(len(*z) - 1)
}

// remove takes a child out, if it is there.
func (z *zombies) remove(c *Process) {
	h := *z
	i, n := c.zombieAt, len(h)-1
	if i > n || h[i] != c {
		return
	}
	last := h[n]
	h[n] = nil
	*z = h[:n]
	if i < n {
		h[i], last.zombieAt = last, i
		z.up(i)
		z.down(last.zombieAt)
	}
}

// up moves the child at i to where none above it is younger.
func (z *zombies) up(i int) {
	h := *z
	c := h[i]
	for i > 0 {
		above := (i - 1) / 2
		if h[above].born < c.born {
			break
		}
		h[i], h[above].zombieAt = h[above], i
		i = above
	}
	h[i], c.zombieAt = c, i
}

// down moves the child at i to where none below it is older.
func (z *zombies) down(i int) {
	h := *z
	c := h[i]
	for {
		below := 2*i + 1
		if below+1 < len(h) && h[below+1].born < h[below].born {
			below++
		}
		if below >= len(h) || c.born < h[below].born {
			break
		}
		h[i], h[below].zombieAt = h[below], i
		i = below
	}
	h[i], c.zombieAt = c, i
}
