package task

// Invoke runs the functions, in parallel if cores are free, and ends when all
// have ended.
func Invoke(c Ctx, fns ...func(Ctx)) {
	at := c.must().used
	for _, fn := range fns[min(1, len(fns)):] {
		Spawn(c, invoke, fn)
	}
	if len(fns) > 0 {
		fns[0](c)
	}
	c.a.syncFrom(at)
}

func invoke(c Ctx, fn func(Ctx)) struct{} {
	fn(c)
	return struct{}{}
}

// A span is a part of a loop.
type span[B any] struct {
	lo, hi, grain int
	body          B
}

// grainFor cuts a loop of n steps into pieces: some eight for each worker, so
// that they can still be evened out.
func (c Ctx) grainFor(n, grain int) int {
	if grain > 0 {
		return grain
	}
	return max(1, n/(8*max(1, int(c.must().w.rt.seatCount.Load()))))
}

// For calls body for parts [lo, hi) of [0, n), each of grain steps or fewer, in
// parallel. A grain of 0 picks one that suits steps of about the same length.
func For(c Ctx, n, grain int, body func(lo, hi int)) {
	c.must()
	if n > 0 {
		forSpan(c, span[func(lo, hi int)]{0, n, c.grainFor(n, grain), body})
	}
}

func forSpan(c Ctx, s span[func(lo, hi int)]) (none struct{}) {
	at := c.a.used
	for s.hi-s.lo > s.grain {
		right := s
		right.lo = s.lo + (s.hi-s.lo)/2
		Spawn(c, forSpan, right)
		s.hi = right.lo
	}
	s.body(s.lo, s.hi)
	c.a.syncFrom(at)
	return
}

// Reduce combines the values of the parts [lo, hi) of [0, n), each of grain
// steps or fewer (0: see For), from left to right: combine must be associative,
// it need not be commutative. For n ≤ 0 it gives the zero value.
func Reduce[T any](c Ctx, n, grain int, part func(lo, hi int) T, combine func(left, right T) T) T {
	c.must()
	if n <= 0 {
		var none T
		return none
	}
	return reduceSpan(c, span[reduction[T]]{0, n, c.grainFor(n, grain), reduction[T]{part, combine}})
}

type reduction[T any] struct {
	part    func(lo, hi int) T
	combine func(left, right T) T
}

func reduceSpan[T any](c Ctx, s span[reduction[T]]) T {
	if s.hi-s.lo <= s.grain {
		return s.body.part(s.lo, s.hi)
	}
	left, right := s, s
	left.hi = s.lo + (s.hi-s.lo)/2
	right.lo = left.hi
	r := Spawn(c, reduceSpan[T], right)
	l := reduceSpan(c, left)
	return s.body.combine(l, r.Sync(c))
}
