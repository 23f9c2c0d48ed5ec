package task

import (
	"cmp"
	"slices"
)

// Below these many elements one worker sorts, or merges, alone.
const (
	sortGrain  = 4096
	mergeGrain = 1 << 14
)

// Sort sorts x in ascending order. It is a merge sort whose merges are parallel
// too; it allocates a second x. Not a number sorts before all numbers.
func Sort[E cmp.Ordered](c Ctx, x []E) {
	c.must()
	buf := make([]E, len(x))
	sortTo(c, sorting[E]{x, buf, false})
}

// sorting sorts x; the result is to be in buf if over, else in x.
type sorting[E any] struct {
	x, buf []E
	over   bool
}

func sortTo[E cmp.Ordered](c Ctx, s sorting[E]) (none struct{}) {
	if len(s.x) <= sortGrain {
		sortRun(s.x, s.buf, s.over)
		return
	}
	m := len(s.x) / 2
	left := Spawn(c, sortTo[E], sorting[E]{s.x[:m], s.buf[:m], !s.over})
	sortTo(c, sorting[E]{s.x[m:], s.buf[m:], !s.over})
	left.Sync(c)
	if s.over {
		mergeTo(c, merging[E]{s.x[:m], s.x[m:], s.buf})
	} else {
		mergeTo(c, merging[E]{s.buf[:m], s.buf[m:], s.x})
	}
	return
}

// sortRun sorts a short x into itself or buf: runs of eight by themselves, then
// merges between the two.
func sortRun[E cmp.Ordered](x, buf []E, over bool) {
	n := len(x)
	passes := 0
	for w := 8; w < n; w *= 2 {
		passes++
	}
	src, dst := x, buf
	if over == (passes%2 == 0) {
		copy(buf, x)
		src, dst = buf, x
	}
	for lo := 0; lo < n; lo += 8 {
		if run := src[lo:min(lo+8, n)]; len(run) == 8 && isWord[E]() {
			network(run)
		} else {
			insertion(run)
		}
	}
	for w := 8; w < n; w *= 2 {
		for lo := 0; lo < n; lo += 2 * w {
			mid, hi := min(lo+w, n), min(lo+2*w, n)
			mergeRun(src[lo:mid], src[mid:hi], dst[lo:hi])
		}
		src, dst = dst, src
	}
}

// less is cmp.Less, written here because a call of another generic function,
// inlined or not, loads that one's dictionary each time.
func less[E cmp.Ordered](x, y E) bool { return x < y || x != x && y == y }

// network sorts eight elements by the 19 exchanges of Batcher's odd-even merge
// sort, none of which is a branch on what the elements are. It is for elements
// that fit in a register: 1.2 ns an int32 where insertion takes 9.
func network[E cmp.Ordered](x []E) {
	x = x[:8:8]
	a, b := sorted(x[0], x[1])
	c, d := sorted(x[2], x[3])
	e, f := sorted(x[4], x[5])
	g, h := sorted(x[6], x[7])
	a, c = sorted(a, c)
	b, d = sorted(b, d)
	e, g = sorted(e, g)
	f, h = sorted(f, h)
	b, c = sorted(b, c)
	f, g = sorted(f, g)
	a, e = sorted(a, e)
	b, f = sorted(b, f)
	c, g = sorted(c, g)
	d, h = sorted(d, h)
	c, e = sorted(c, e)
	d, f = sorted(d, f)
	b, c = sorted(b, c)
	d, e = sorted(d, e)
	f, g = sorted(f, g)
	x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7] = a, b, c, d, e, f, g, h
}

// sorted orders two elements. The compiler makes conditional moves of two ifs,
// not of one.
func sorted[E cmp.Ordered](x, y E) (lo, hi E) {
	lo, hi = x, y
	if less(y, x) {
		lo = y
	}
	if less(y, x) {
		hi = x
	}
	return lo, hi
}

func insertion[E cmp.Ordered](x []E) {
	for i := 1; i < len(x); i++ {
		v := x[i]
		j := i
		for ; j > 0; j-- {
			u := x[j-1]
			if !less(v, u) {
				break
			}
			x[j] = u
		}
		x[j] = v
	}
}

type merging[E any] struct{ a, b, to []E }

// mergeTo merges in parallel: the middle of the longer run splits both.
func mergeTo[E cmp.Ordered](c Ctx, m merging[E]) (none struct{}) {
	at := c.a.used
	for len(m.to) > mergeGrain {
		var i, j int
		if len(m.a) >= len(m.b) {
			i = len(m.a) / 2
			j, _ = slices.BinarySearch(m.b, m.a[i])
		} else {
			j = len(m.b) / 2
			// Equal elements of a go first.
			i, _ = slices.BinarySearchFunc(m.a, m.b[j], func(e, t E) int {
				if cmp.Less(t, e) {
					return 1
				}
				return -1
			})
		}
		Spawn(c, mergeTo[E], merging[E]{m.a[i:], m.b[j:], m.to[i+j:]})
		m = merging[E]{m.a[:i], m.b[:j], m.to[:i+j]}
	}
	mergeRun(m.a, m.b, m.to)
	c.a.syncFrom(at)
	return
}

// mergeRun merges two sorted runs, equal elements of a first. It works from both
// ends at once, and without a branch on what the elements are: for as many steps
// as neither run can end in.
func mergeRun[E cmp.Ordered](a, b, to []E) {
	for {
		h := min(len(a), len(b)) / 2
		if h == 0 {
			break
		}
		i, p := mergeEnds(a, b, to, h)
		a, b, to = a[i:len(a)-p], b[h-i:len(b)-(h-p)], to[h:len(to)-h]
	}
	for len(a) > 0 && len(b) > 0 {
		if less(b[0], a[0]) {
			to[0], b = b[0], b[1:]
		} else {
			to[0], a = a[0], a[1:]
		}
		to = to[1:]
	}
	copy(to, a)
	copy(to[len(a):], b)
}

// mergeEnds puts the h least and the h greatest elements of a and b in their
// places in to, and tells how many of each came from a. Both runs have at least
// 2h elements.
func mergeEnds[E cmp.Ordered](a, b, to []E, h int) (front, back int) {
	i, j := 0, 0
	p, q := len(a)-1, len(b)-1
	end := len(to) - 1
	for k := range h {
		x, y := a[i], b[j]
		v, fromB := x, 0
		if less(y, x) {
			v, fromB = y, 1
		}
		to[k] = v
		j += fromB
		i += 1 - fromB

		x, y = a[p], b[q]
		v, fromA := y, 0
		if less(y, x) {
			v, fromA = x, 1
		}
		to[end-k] = v
		p -= fromA
		q -= 1 - fromA
	}
	return i, len(a) - 1 - p
}
