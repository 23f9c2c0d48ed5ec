package errseq

import (
	"sync"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"hardtack/abi/linux"
)

// TestModel: each watcher hears of the last error that came since it last asked or,
// at first, since it was opened or since anybody heard.
func TestModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s Seq
		type watcher struct {
			since atomic.Uint32
			news  bool
		}
		var all []*watcher
		last, told := linux.Errno(0), true // told: somebody heard of the last error
		t.Repeat(map[string]func(*rapid.T){
			"open": func(t *rapid.T) {
				w := &watcher{news: !told}
				w.since.Store(s.Sample())
				all = append(all, w)
			},
			"error": func(t *rapid.T) {
				last, told = rapid.SampledFrom([]linux.Errno{linux.EIO, linux.ENOSPC, linux.EROFS}).Draw(t, "errno"), false
				s.Set(last)
				for _, w := range all {
					w.news = true
				}
			},
			"check": func(t *rapid.T) {
				if len(all) == 0 {
					t.Skip()
				}
				w := rapid.SampledFrom(all).Draw(t, "watcher")
				want := linux.Errno(0)
				if w.news {
					want, told = last, true
				}
				if e := s.Check(&w.since); e != want {
					t.Fatalf("%v, want %v", e, want)
				}
				w.news = false
			},
		})
	})
}

// TestOnce: of threads that ask through the same open file one hears.
func TestOnce(t *testing.T) {
	var s Seq
	var since atomic.Uint32
	for range 200 {
		s.Set(linux.EIO)
		var heard atomic.Int32
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				if s.Check(&since) != 0 {
					heard.Add(1)
				}
			})
		}
		wg.Wait()
		if n := heard.Load(); n != 1 {
			t.Fatalf("%d heard", n)
		}
	}
}
