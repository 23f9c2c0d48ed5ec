package vm

// list is a sorted sequence of mappings: an array with a gap where it was
// changed last. Programs add and split mappings next to where they did before,
// so that little is moved, and a lookup is a binary search in an array.
type list struct {
	a      []vma // a[:lo] and a[hi:] are the mappings, a[lo:hi] is zero
	lo, hi int
}

func (l *list) len() int { return len(l.a) - (l.hi - l.lo) }

// at returns mapping i. The pointer is valid until the list changes.
func (l *list) at(i int) *vma {
	if i >= l.lo {
		i += l.hi - l.lo
	}
	return &l.a[i]
}

// room moves the gap to index i and makes it wide enough for n more.
func (l *list) room(i, n int) {
	if l.hi-l.lo < n {
		size := l.len()
		b := make([]vma, size+size/2+n+6)
		for k := range i {
			b[k] = *l.at(k)
		}
		hi := len(b) - (size - i)
		for k := i; k < size; k++ {
			b[hi+k-i] = *l.at(k)
		}
		l.a, l.lo, l.hi = b, i, hi
		return
	}
	switch d := l.lo - i; {
	case d > 0: // the gap moves down
		copy(l.a[l.hi-d:l.hi], l.a[i:l.lo])
		clear(l.a[i:min(l.lo, l.hi-d)])
		l.lo, l.hi = i, l.hi-d
	case d < 0:
		d = -d
		copy(l.a[l.lo:], l.a[l.hi:l.hi+d])
		clear(l.a[max(l.hi, l.lo+d) : l.hi+d])
		l.lo, l.hi = i, l.hi+d
	}
}

// clone returns a copy with room for a few more.
func (l *list) clone() list {
	size := l.len()
	allMaps.Add(int64(size))
	b := make([]vma, size+2)
	copy(b[copy(b, l.a[:l.lo]):], l.a[l.hi:])
	return list{a: b, lo: size, hi: len(b)}
}

// insert puts v at index i.
func (l *list) insert(i int, v *vma) {
	w := *v // v may be in the list
	l.room(i, 1)
	l.a[l.lo] = w
	l.lo++
	allMaps.Add(1)
}

// remove takes [i, j) out.
func (l *list) remove(i, j int) {
	l.room(i, 0)
	clear(l.a[l.hi : l.hi+j-i])
	l.hi += j - i
	allMaps.Add(-int64(j - i))
}

// find returns the index of the first mapping that ends above addr.
func (l *list) find(addr uint64) int {
	lo, hi := 0, l.len()
	for lo < hi {
		m := int(uint(lo+hi) >> 1)
		if l.at(m).end <= addr {
			lo = m + 1
		} else {
			hi = m
		}
	}
	return lo
}
