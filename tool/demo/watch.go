package main

import (
	"bytes"
	"io"
	"sync"
)

// A watch passes the guest's console on and looks for a line in it.
type watch struct {
	w    io.Writer
	line []byte
	seen chan struct{} // closed when the line came
	once sync.Once
	part []byte // the unfinished line at the end; the writer's
}

func newWatch(w io.Writer, line string) *watch {
	return &watch{w: w, line: []byte(line), seen: make(chan struct{})}
}

// Write is called by one goroutine: the one that os/exec starts.
func (w *watch) Write(b []byte) (int, error) {
	w.part = append(w.part, b...)
	for {
		line, rest, ok := bytes.Cut(w.part, []byte("\n"))
		if !ok {
			break
		}
		if bytes.Equal(bytes.TrimSpace(line), w.line) {
			w.once.Do(func() { close(w.seen) })
		}
		w.part = append(w.part[:0], rest...)
	}
	return w.w.Write(b)
}
