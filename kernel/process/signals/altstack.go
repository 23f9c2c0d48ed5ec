package signals

import "hardtack/abi/linux"

// AltStack is a thread's alternate signal stack.
type AltStack struct{ stack linux.StackT }

// Clear forgets the stack.
func (a *AltStack) Clear() { a.stack = linux.StackT{} }

// has reports whether sp is on the stack. With SS_AUTODISARM the stack counts as free
// whenever a signal comes.
func (a *AltStack) has(sp uint64) bool {
	s := &a.stack
	return s.Flags&linux.SS_AUTODISARM == 0 && s.Size != 0 && sp > s.SP && sp-s.SP <= s.Size
}

// Get returns the stack as sigaltstack(2) tells it, with sp as the stack pointer.
func (a *AltStack) Get(sp uint64) linux.StackT {
	s := a.stack
	switch {
	case s.Size == 0:
		s.Flags = linux.SS_DISABLE
	case a.has(sp):
		s.Flags |= linux.SS_ONSTACK
	}
	return s
}

// Set is sigaltstack(2) with sp as the stack pointer.
func (a *AltStack) Set(n *linux.StackT, sp uint64) linux.Errno {
	if a.has(sp) {
		return linux.EPERM
	}
	if n.Flags&^(linux.SS_DISABLE|linux.SS_ONSTACK|linux.SS_AUTODISARM) != 0 {
		return linux.EINVAL
	}
	mode := n.Flags &^ linux.SS_AUTODISARM
	switch {
	case mode == linux.SS_DISABLE:
		a.Clear()
	case mode != 0 && mode != linux.SS_ONSTACK:
		return linux.EINVAL
	case n.Size < linux.MINSIGSTKSZ:
		return linux.ENOMEM
	default:
		a.stack = linux.StackT{SP: n.SP, Size: n.Size, Flags: n.Flags & linux.SS_AUTODISARM}
	}
	return 0
}
