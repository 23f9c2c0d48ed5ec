package proc

import (
	"hardtack/kernel/base/hook"
	"hardtack/nucleus"
)

// Partner is a thread's part in message calls (package endpoint), which it has once it
// has made one. All but Waited and CancelWait are for the thread's goroutine.
type Partner interface {
	// Waited returns for how many ticks the thread has waited inside the nucleus,
	// without a goroutine, and whether it does at a time.
	Waited(now int64) (ticks int64, waits bool)
	// CancelWait ends such a wait: the thread's work word says why.
	CancelWait()
	// Forget is called when the thread has another descriptor table.
	Forget()
	// Undo takes back a call that is prepared: the thread has other work, and makes the
	// call again afterwards.
	Undo()
	// Finish puts the result of a call that is over where it belongs.
	Finish()
	// Bytes returns what the part takes of the kernel's heap; anybody may ask.
	Bytes() int64
	// Leave ends all: the thread gets another address space, or ends.
	Leave()
}

// LeftUser returns the thread that left user mode with a context, or for nil a thread
// without a goroutine that can run, if there is one soon.
var LeftUser hook.Of[func(u *nucleus.UserContext) *Thread]

// SetPartner gives the calling thread its part in message calls.
func (t *Thread) SetPartner(p Partner) { t.partner.Store(&p) }

// leavePartner ends that.
func (t *Thread) leavePartner() {
	p := t.partner.Load()
	if p == nil {
		return
	}
	waited, _ := (*p).Waited(ticks())
	t.Proc.mu.Lock()
	t.away += waited
	t.partner.Store(nil)
	t.Proc.mu.Unlock()
	(*p).Leave()
}

// waitedInside returns how long the thread has waited inside the nucleus, in ticks, and
// whether it does now.
func (t *Thread) waitedInside(now int64) (int64, bool) {
	if p := t.partner.Load(); p != nil {
		return (*p).Waited(now)
	}
	return 0, false
}

// cancelWait ends the thread's wait inside the nucleus.
func (t *Thread) cancelWait() {
	if p := t.partner.Load(); p != nil {
		(*p).CancelWait()
	}
}

// undoCall takes back the message call that the thread has prepared.
func (t *Thread) undoCall() {
	if p := t.partner.Load(); p != nil {
		(*p).Undo()
	}
}

// finishCall fetches the result of a message call.
func (t *Thread) finishCall() {
	if p := t.partner.Load(); p != nil {
		(*p).Finish()
	}
}

// forgetTargets is called when the thread gets another descriptor table.
func (t *Thread) forgetTargets() {
	if p := t.partner.Load(); p != nil {
		(*p).Forget()
	}
}
