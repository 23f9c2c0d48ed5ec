package machine

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
)

// The control channel carries lines. The host says "winsize ROWS COLS", "eof",
// "signal NAME", or its number, and what package driver/virtio/console has for copies; the
// guest says "ready", "frozen", "exit STATUS", "panic TEXT" and "cover KIND DATA".
// Anything else the guest says is ignored: a later kernel may say more.

// lineMax bounds a line of the guest.
const lineMax = 64 << 10

// control is the host's end.
type control struct {
	ready chan struct{} // closed when the guest said so
	over  chan struct{} // closed when the guest said how it ended

	frozen chan struct{} // one each time that the guest said so

	wmu sync.Mutex
	w   io.Writer // guarded by wmu

	mu    sync.Mutex
	told  verdict // guarded by mu
	cover counts  // guarded by mu
}

// verdict is how the guest says it ended.
type verdict struct {
	exited    bool
	status    int
	panicked  bool
	panicText string
}

func newControl(w io.Writer) *control {
	return &control{ready: make(chan struct{}), over: make(chan struct{}), frozen: make(chan struct{}, 1), w: w, cover: counts{dir: os.Getenv("GOCOVERDIR")}}
}

// say sends a line. A machine that is gone does not listen: that is told by
// its end, not here.
func (c *control) say(format string, args ...any) {
	c.wmu.Lock()
	defer c.wmu.Unlock()
	_, _ = fmt.Fprintf(c.w, format+"\n", args...)
}

// listen reads the guest's lines until the channel closes.
func (c *control) listen(r io.Reader) {
	s := bufio.NewScanner(r)
	s.Buffer(nil, lineMax)
	for s.Scan() {
		c.hear(strings.TrimRight(s.Text(), "\r"))
	}
	_, _ = io.Copy(io.Discard, r) // after an overlong line: keep the guest from blocking
}

func (c *control) hear(line string) {
	word, rest, _ := strings.Cut(line, " ")
	c.mu.Lock()
	defer c.mu.Unlock()
	switch word {
	case "ready":
		closeOnce(c.ready)
	case "frozen":
		select {
		case c.frozen <- struct{}{}:
		default:
		}
	case "exit":
		if status, err := strconv.ParseUint(rest, 10, 8); err == nil {
			c.told.exited, c.told.status = true, int(status)
			closeOnce(c.over)
		}
	case "cover":
		c.cover.hear(rest)
	case "panic":
		c.told.panicked, c.told.panicText = true, rest
		closeOnce(c.over)
	}
}

// verdict is what the guest has said so far.
func (c *control) verdict() verdict {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.told
}

func (c *control) isReady() bool { return isClosed(c.ready) }

func isClosed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// closeOnce is called by one goroutine only, under mu.
func closeOnce(c chan struct{}) {
	if !isClosed(c) {
		close(c)
	}
}
