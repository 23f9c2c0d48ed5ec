//go:build !lockcheck

package lock

// Checker gives a lock its place in the order of locks; see the package comment.
type Checker struct{}

// SetRank says that while the lock is held only locks of this rank or a higher one
// may be taken. The name is for messages. To be called before the lock is used.
func (*Checker) SetRank(rank int, name string) {}

func (*Checker) before()   {}
func (*Checker) acquired() {}
func (*Checker) released() {}
