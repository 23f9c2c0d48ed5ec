//go:build nucleus_none

package ipc

import "errors"

const controlName = "none"

// control none: there is one core, and operations are not interrupted.
type control struct{}

func (*control) works(cores int) error {
	if cores != 1 {
		return errors.New("nucleus: built without concurrency control, for one core")
	}
	return nil
}

func (*control) enter(core uint32) bool     { return false }
func (*control) leave(core uint32, in bool) {}
func (*control) enterAlone(core uint32)     {}
func (*control) leaveAlone(core uint32)     {}

type objectLock struct{}

func (*objectLock) acquire() {}
func (*objectLock) release() {}

func publish(w *where, v where) { *w = v }
