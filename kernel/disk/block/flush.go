package block

import (
	"sync"

	"hardtack/kernel/disk/blockdev"
)

// flusher lets one flush command serve all requests that wait for one. A flush
// covers what had completed when it was given to the device, so who comes while
// one is under way waits for the next: of any number of programs that sync at
// once, each waits for two flushes at most.
type flusher struct {
	d *Disk // immutable

	mu      sync.Mutex
	running bool    // guarded by mu
	serving list    // guarded by mu; whom the flush under way serves
	waiting list    // guarded by mu; whom the next will
	command Request // the running one's
}

// add lets r wait for a flush that begins now or later. r is a flush, or a
// write that is done and must be durable.
func (f *flusher) add(r *Request) {
	f.mu.Lock()
	if f.running {
		f.waiting.push(r)
		f.mu.Unlock()
		return
	}
	f.running = true
	f.serving.push(r)
	f.mu.Unlock()
	f.start()
}

func (f *flusher) start() {
	f.command = Request{Op: blockdev.Flush, Done: f.done}
	f.d.enqueue(&f.command, &f.command)
}

// done ends the flush under way and starts the next if somebody waits.
func (f *flusher) done(r *Request) {
	err := r.Err
	f.mu.Lock()
	served := f.serving
	f.serving, f.waiting = f.waiting, list{}
	f.running = f.serving.first != nil
	next := f.running
	f.mu.Unlock()
	for x := served.pop(); x != nil; x = served.pop() {
		x.Err = err
		x.Done(x)
	}
	if next {
		f.start()
	}
}
