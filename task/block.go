package task

// Block runs fn, which may wait for anything, and lets another worker use the
// core meanwhile. All that the task has spawned can be stolen while it waits.
//
// Waiting without Block does no harm to other goroutines. To other tasks it
// costs a worker for about 20 ms; then the runtime sees it and starts another.
// But what a task has spawned may not be visible to others before it blocks: a
// task that waits for its own child other than by Sync must do it in Block.
func Block(c Ctx, fn func()) {
	a := c.live()
	w := a.w
	w.share(w.index(a.top()), true)
	w.event(evBlock, 0)
	w.giveSeat()
	defer func() {
		w.takeSeat()
		w.event(evUnblock, 0)
	}()
	fn()
}

// Receive is a receive from ch with Block; it does not give the core away when
// there is a value already.
func Receive[T any](c Ctx, ch <-chan T) (v T, ok bool) {
	select {
	case v, ok = <-ch:
	default:
		Block(c, func() { v, ok = <-ch })
	}
	return v, ok
}

// Send is a send to ch with Block.
func Send[T any](c Ctx, ch chan<- T, v T) {
	select {
	case ch <- v:
	default:
		Block(c, func() { ch <- v })
	}
}
