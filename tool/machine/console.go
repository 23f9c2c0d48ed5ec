package machine

import (
	"bytes"
	"context"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// escape is Ctrl-A, as in QEMU's own console: x leaves, a second one sends it.
const escape = 0x01

// patience is how long input is held back for a guest that prints but does
// not say that it is ready: a kernel without the control channel.
var patience = 10 * time.Second

// input moves the host's input to the guest's console.
type input struct {
	r        io.Reader
	console  *os.File
	ctl      *control
	terminal bool
	leave    func() // the user wants out
}

// run ends when the input does. Bytes that a kernel is not ready for would be
// lost in the reset of its serial port, so it first waits for the word.
func (in *input) run(ctx context.Context) {
	if in.r == nil {
		return
	}
	if in.terminal {
		in.runTerminal(ctx)
		return
	}
	if !in.await(ctx) {
		return
	}
	if _, err := io.Copy(onlyWriter{in.console}, in.r); err != nil && ctx.Err() != nil {
		return
	}
	if in.drain(ctx) {
		in.ctl.say("eof")
	}
}

func (in *input) await(ctx context.Context) bool {
	t := time.NewTimer(patience)
	defer t.Stop()
	select {
	case <-in.ctl.ready:
	case <-t.C:
	case <-ctx.Done():
		return false
	}
	return true
}

// runTerminal looks for the escape in what is typed; that works before the
// guest is ready, too, so another goroutine does the waiting.
func (in *input) runTerminal(ctx context.Context) {
	typed := make(chan []byte, 64)
	defer close(typed)
	go func() {
		if !in.await(ctx) {
			return
		}
		for b := range typed {
			if _, err := in.console.Write(b); err != nil {
				return
			}
		}
	}()
	var f escapeFilter
	for {
		buf := make([]byte, 1024)
		n, err := in.r.Read(buf)
		text, leave := f.filter(buf[:n])
		if leave {
			in.leave()
			return
		}
		if len(text) > 0 {
			select {
			case typed <- text:
			case <-ctx.Done():
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// escapeFilter takes Ctrl-A sequences out of what is typed.
type escapeFilter struct{ pending bool }

func (f *escapeFilter) filter(in []byte) (out []byte, leave bool) {
	for _, c := range in {
		switch {
		case f.pending:
			f.pending = false
			switch c {
			case 'x', 'X':
				return out, true
			case escape, 'a':
				out = append(out, escape)
			default:
				out = append(out, escape, c)
			}
		case c == escape:
			f.pending = true
		default:
			out = append(out, c)
		}
	}
	return out, false
}

// drain waits until QEMU has taken every byte written to the console.
func (in *input) drain(ctx context.Context) bool {
	pause := time.Millisecond
	for {
		left, err := unsent(in.console)
		if err != nil || left == 0 {
			return err == nil
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(pause):
		}
		pause = min(2*pause, 50*time.Millisecond)
	}
}

// unsent is how many bytes of a socket its peer has not read.
func unsent(f *os.File) (int, error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return 0, err
	}
	var n int
	var ioErr error
	if err := raw.Control(func(fd uintptr) { n, ioErr = unix.IoctlGetInt(int(fd), unix.SIOCOUTQ) }); err != nil {
		return 0, err
	}
	return n, ioErr
}

// output moves the guest's console to the host and remembers its end, where a
// panicking kernel has left its last words.
type output struct {
	w     io.Writer
	words *lastWords // nil: they are printed

	mu   sync.Mutex
	tail []byte // guarded by mu
}

// tailMax is how much of the console's end is remembered.
const tailMax = 64 << 10

// run moves bytes until the console closes; its error is the host's output's.
func (o *output) run(console io.Reader) error {
	buf := make([]byte, 32<<10)
	for {
		n, err := console.Read(buf)
		if n > 0 {
			text := o.words.filter(buf[:n])
			o.remember(text)
			if failed := o.print(text); failed != nil {
				return failed
			}
		}
		if err != nil {
			return o.print(o.words.rest()) // QEMU's end; what it means is not told here
		}
	}
}

func (o *output) print(text []byte) error {
	if o.w == nil || len(text) == 0 {
		return nil
	}
	_, err := o.w.Write(text)
	return err
}

func (o *output) remember(b []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.tail = append(o.tail, b...)
	if extra := len(o.tail) - tailMax; extra > 0 {
		o.tail = append(o.tail[:0], o.tail[extra:]...)
	}
}

// silent says whether the guest has printed nothing at all.
func (o *output) silent() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.tail) == 0
}

// panicText is what the console says from the last line that a Go program, or
// a kernel of ours, prints when it panics.
func (o *output) panicText() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	at := -1
	for _, mark := range []string{"panic: ", "fatal error: ", "kernel panic"} {
		at = max(at, bytes.LastIndex(o.tail, []byte(mark)))
	}
	if at < 0 {
		return "the kernel stopped without a word"
	}
	line, _, _ := bytes.Cut(o.tail[at:], []byte("\n"))
	return string(bytes.TrimSpace(line))
}

type onlyWriter struct{ io.Writer }
