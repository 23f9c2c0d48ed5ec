package main

import (
	"io"
	"os"
	"sync"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
	"golang.org/x/term"

	"hardtack/tool/source"
)

// showProgress shows a bar for each layer that the store brings, if out is a terminal, until
// the returned function is called.
func showProgress(store *source.Store, out *os.File) (end func()) {
	if !term.IsTerminal(int(out.Fd())) {
		return func() {}
	}
	p := mpb.New(mpb.WithOutput(out), mpb.WithWidth(60))
	var mu sync.Mutex
	var bars []*mpb.Bar // guarded by mu
	store.Progress = func(layer string, size int64, r io.ReadCloser) io.ReadCloser {
		bar := p.AddBar(max(size, 1), mpb.PrependDecorators(decor.Name(layer, decor.WCSyncSpaceR)),
			mpb.AppendDecorators(decor.CountersKibiByte("% .1f / % .1f")))
		mu.Lock()
		bars = append(bars, bar)
		mu.Unlock()
		shown, err := bar.ProxyReader(r)
		if err != nil { // the bars have ended
			return r
		}
		return shown
	}
	return func() {
		store.Progress = nil
		mu.Lock()
		for _, bar := range bars {
			bar.Abort(false) // one that is complete stays as it is
		}
		mu.Unlock()
		p.Wait()
	}
}

// bars show how much of a build is done, one for each work, on a terminal.
type bars struct {
	out *os.File

	mu   sync.Mutex
	p    *mpb.Progress       // nil if none is shown; guarded by mu
	list map[string]*mpb.Bar // guarded by mu
}

// newBars returns nil, which shows nothing, if out is no terminal.
func newBars(out *os.File) *bars {
	if !term.IsTerminal(int(out.Fd())) {
		return nil
	}
	return &bars{out: out}
}

// set says how many bytes of a work are done.
func (b *bars) set(work string, done, total int64) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.p == nil {
		b.p, b.list = mpb.New(mpb.WithOutput(b.out), mpb.WithWidth(60)), map[string]*mpb.Bar{}
	}
	bar := b.list[work]
	if bar == nil {
		bar = b.p.AddBar(max(total, 1), mpb.PrependDecorators(decor.Name(work, decor.WCSyncSpaceR)),
			mpb.AppendDecorators(decor.CountersKibiByte("% .1f / % .1f")))
		b.list[work] = bar
	}
	bar.SetCurrent(min(done, total))
}

// end leaves the bars as they are: what is printed next comes below them.
func (b *bars) end() {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.p == nil {
		return
	}
	for _, bar := range b.list {
		bar.Abort(false)
	}
	b.p.Wait()
	b.p, b.list = nil, nil
}

// below is out, with what is written to it below the bars.
func (b *bars) below() io.Writer {
	if b == nil {
		return os.Stderr
	}
	return belowBars{b}
}

type belowBars struct{ *bars }

func (b belowBars) Write(p []byte) (int, error) {
	b.end()
	return b.out.Write(p)
}

// counted is a file that becomes a tar, with a bar.
type counted struct {
	io.Writer
	bars        *bars
	done, total int64
}

func (c *counted) Write(p []byte) (int, error) {
	n, err := c.Writer.Write(p)
	c.done += int64(n)
	c.bars.set("writing", c.done, c.total)
	return n, err
}
