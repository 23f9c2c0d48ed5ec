package ump

import "context"

// turn is a lock that can be waited for until a context ends. It needs make(turn, 1).
type turn chan struct{}

// lock takes the lock. One that is free is taken even if ctx has ended.
func (t turn) lock(ctx context.Context) error {
	if t.tryLock() {
		return nil
	}
	select {
	case t <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (t turn) tryLock() bool {
	select {
	case t <- struct{}{}:
		return true
	default:
		return false
	}
}

func (t turn) unlock() { <-t }
