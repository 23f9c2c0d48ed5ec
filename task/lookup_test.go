package task

import (
	"sync/atomic"
	"testing"
)

// TestRequestsAreKept checks that a worker which cannot serve a request now serves it
// later. Whoever asked may be asleep, and does not ask again.
func TestRequestsAreKept(t *testing.T) {
	rt := newRuntime(t, WithWorkers(1))
	kept := func(t *testing.T, w *Worker, want uint32) {
		t.Helper()
		if got := w.flags.Load(); got&want != want || !w.rung() {
			t.Errorf("flags %#x are set, want %#x; rung: %v", got, want, w.rung())
		}
	}
	t.Run("all is stolen", func(t *testing.T) {
		w := &Worker{rt: rt}
		w.word.Store(uint64(pack(1, 1)))
		w.ring(flagWant)
		w.lookUp(1)
		kept(t, w, flagWant)
	})
	t.Run("the task is aborted", func(t *testing.T) {
		ended := &scope{}
		ended.ends.Store(true)
		w := &Worker{rt: rt, scopes: []scopeMark{{s: ended}}}
		func() {
			defer func() {
				if _, ok := recover().(abortSignal); !ok {
					t.Error("the worker went on")
				}
			}()
			w.lookUpRarely(0, flagAbort|flagWant|flagLeave)
		}()
		kept(t, w, flagWant|flagLeave)
	})
	t.Run("served", func(t *testing.T) {
		w := &Worker{rt: rt, frames: make([]Frame, 2), scopes: []scopeMark{{s: &scope{}}}}
		w.scopes[0].base = &w.frames[0]
		atomic.StoreUintptr(&w.limit, 1)
		w.ring(flagWant)
		w.lookUp(1)
		if got := w.flags.Load(); got != 0 || !w.hasShared() {
			t.Errorf("flags %#x are set, shared: %v", got, w.hasShared())
		}
	})
}
