package ipc

import "hardtack/nucleus/control"

// guard is the compiled concurrency control, around each operation.
type guard struct{ control.Control }

func (g *guard) enter(core uint32) bool     { return g.Enter(core) }
func (g *guard) leave(core uint32, in bool) { g.Leave(core, in) }
func (g *guard) enterAlone(core uint32)     { g.EnterAlone(core) }
func (g *guard) leaveAlone(core uint32)     { g.LeaveAlone(core) }

// objectLock is its lock of an object.
type objectLock struct{ control.Object }

func (l *objectLock) acquire() { l.Acquire() }
func (l *objectLock) release() { l.Release() }

func publish(w *where, v where) { control.Publish32((*uint32)(w), uint32(v)) }
