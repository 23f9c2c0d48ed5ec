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
