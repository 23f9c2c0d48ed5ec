package task

import "testing"

// TestAbortKeepsRequests checks that a worker whose tasks are aborted still serves those
// who want its work or its seat: an abort unwinds before it comes to them.
func TestAbortKeepsRequests(t *testing.T) {
	ended := &scope{}
	ended.ends.Store(true)
	w := &Worker{scopes: []scopeMark{{s: ended}}}
	func() {
		defer func() {
			if _, ok := recover().(abortSignal); !ok {
				t.Error("the worker went on")
			}
		}()
		w.lookUpRarely(0, flagAbort|flagWant|flagLeave)
	}()
	if got := w.flags.Load(); got&(flagWant|flagLeave) != flagWant|flagLeave || !w.rung() {
		t.Errorf("flags %#x are up, rung is %v", got, w.rung())
	}
}
