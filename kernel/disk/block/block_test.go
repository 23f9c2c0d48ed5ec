package block

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"hardtack/abi/linux"
	"hardtack/kernel/base/mem"
	"hardtack/kernel/base/wait"
	"hardtack/kernel/disk/blockdev"
)

func random(n int, seed uint64) []byte {
	r := rand.New(rand.NewPCG(seed, 7))
	b := make([]byte, n, n+8)
	for i := 0; i < n; i += 8 {
		binary.LittleEndian.PutUint64(b[i:i+8], r.Uint64())
	}
	return b
}

// What is written is read, whatever the device's limits and where the memory is.
func TestMove(t *testing.T) {
	for name, change := range map[string]func(*blockdev.Limits){
		"plain":     nil,
		"one queue": func(l *blockdev.Limits) { l.Queues, l.Depth = 1, 2 },
		"pages":     func(l *blockdev.Limits) { l.PageLists = true },
		"segments":  func(l *blockdev.Limits) { l.MaxSegments, l.MaxSegment = 3, 8192 },
		"FUA":       func(l *blockdev.Limits) { l.FUA = true },
		"4 KiB":     func(l *blockdev.Limits) { l.LogicalBlock = 4096 },
		"no cache":  func(l *blockdev.Limits) { l.WriteCache = false },
	} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				f, d := newFake(t, func(l *blockdev.Limits) {
					l.Sectors = 4096
					if change != nil {
						change(l)
					}
				})
				p := d.Whole()
				block := f.limits.LogicalBlock
				want := make([]byte, len(f.data))
				for range rapid.IntRange(1, 8).Draw(rt, "operations") {
					var batch []piece
					at := 0
					fua := rapid.Bool().Draw(rt, "fua")
					for range rapid.IntRange(1, 6).Draw(rt, "pieces") {
						at += block * rapid.SampledFrom([]int{0, 0, 1, 9, 100}).Draw(rt, "gap")
						n := block * rapid.SampledFrom([]int{1, 2, 8, 16, 129, 700}).Draw(rt, "blocks")
						if at+n > len(want) {
							break
						}
						var b []byte
						frame, ok := mem.Frame(0), false
						if n <= 4096 && rapid.Bool().Draw(rt, "frame") {
							if frame, ok = mem.Alloc(); ok {
								defer frame.Put()
								b = frame.Bytes()[:n]
							}
						}
						if !ok {
							b = make([]byte, n)
						}
						copy(b, random(n, rapid.Uint64().Draw(rt, "seed")))
						copy(want[at:], b)
						batch = append(batch, piece{int64(at), b})
						at += n
					}
					if e := Move(p, blockdev.Write, batch, fua); e != 0 {
						rt.Fatalf("write: %v", e)
					}
					for _, x := range batch {
						if fua && f.limits.WriteCache && !bytes.Equal(f.stable[x.Off:][:len(x.Buf)], x.Buf) {
							rt.Fatal("a write with fua is not durable")
						}
						if got := read(t, p, x.Off, len(x.Buf)); !bytes.Equal(got, x.Buf) {
							rt.Fatal("read differs from what was written")
						}
					}
				}
				if !bytes.Equal(f.data, want) {
					rt.Fatal("the disk differs")
				}
			})
		})
	}
}

func TestMoveRefuses(t *testing.T) {
	_, d := newFake(t, nil)
	p := d.Whole()
	for _, x := range []piece{
		{-512, make([]byte, 512)}, {p.Bytes(), make([]byte, 512)}, {p.Bytes() - 512, make([]byte, 1024)},
		{100, make([]byte, 512)}, {0, make([]byte, 100)}, {1 << 62, make([]byte, 512)},
	} {
		if e := Move(p, blockdev.Write, []piece{x}, false); e != linux.EINVAL {
			t.Errorf("%d bytes at %d: %v", len(x.Buf), x.Off, e)
		}
	}
	_, d = newFake(t, func(l *blockdev.Limits) { l.ReadOnly = true })
	if e := Move(d.Whole(), blockdev.Write, []piece{{0, make([]byte, 512)}}, false); e != linux.EROFS {
		t.Errorf("write to a read-only disk: %v", e)
	}
}

// Neighbours that wait become one command, in either order; others do not.
func TestMerging(t *testing.T) {
	f, d := newFake(t, func(l *blockdev.Limits) { l.Queues, l.Depth = 1, 1 })
	f.hold = true
	var wg sync.WaitGroup
	submit := func(op blockdev.Op, sector uint64, fua bool) {
		frame, _ := mem.Alloc()
		wg.Add(1)
		d.Submit(&Request{Op: op, FUA: fua, Sector: sector, Sectors: 8,
			Data: []blockdev.Segment{{Phys: frame.Phys(), Len: 4096}},
			Done: func(r *Request) { frame.Put(); wg.Done() }})
	}
	submit(blockdev.Write, 800, false) // the device is busy with this, and has two commands waiting
	submit(blockdev.Write, 1600, false)
	for _, s := range []uint64{0, 8, 16, 24} { // one behind the other
		submit(blockdev.Write, s, false)
	}
	submit(blockdev.Write, 400, false)
	submit(blockdev.Write, 392, false) // in front
	submit(blockdev.Read, 408, false)  // a read does not join a write
	submit(blockdev.Write, 408, true)  // nor a durable one others
	f.let()
	wg.Wait()
	p := d.Whole().Stats()
	if f.commands != 6+1 { // and the flush behind the durable write
		t.Errorf("%d commands: %v", f.commands, f.seen)
	}
	if p.Writes.Done != 9 || p.Writes.Merged != 4 || p.Reads.Done != 1 || p.Writes.Sectors != 72 || p.Flushes.Done != 1 {
		t.Errorf("figures %+v", p)
	}
}

// Any number of programs that sync share flushes.
func TestFlushesAreShared(t *testing.T) {
	f, d := newFake(t, nil)
	f.hold = true
	var wg sync.WaitGroup
	n := 50
	var failed atomic.Int32
	wg.Add(n)
	for range n {
		d.Submit(&Request{Op: blockdev.Flush, Done: func(r *Request) {
			if r.Err != 0 {
				failed.Add(1)
			}
			wg.Done()
		}})
	}
	f.let()
	wg.Wait()
	if f.flushes != 2 || failed.Load() != 0 {
		t.Errorf("%d flushes for %d requests, %d failed", f.flushes, n, failed.Load())
	}
	// Without a cache nothing is to be flushed.
	f, d = newFake(t, func(l *blockdev.Limits) { l.WriteCache = false })
	if e := d.Whole().Flush(); e != 0 || f.commands != 0 {
		t.Errorf("%v, %d commands", e, f.commands)
	}
}

// A flush that fails is told to those who waited for it, once, and not repeated.
func TestFlushFails(t *testing.T) {
	f, d := newFake(t, nil)
	p := d.Whole()
	f.fail = func(c *blockdev.Command) linux.Errno {
		if c.Op == blockdev.Flush {
			return linux.EIO
		}
		return 0
	}
	if e := p.Flush(); e != linux.EIO || f.commands != 1 {
		t.Errorf("flush: %v after %d commands", e, f.commands)
	}
	if e := Move(p, blockdev.Write, []piece{{0, make([]byte, 512)}}, true); e != linux.EIO {
		t.Errorf("a write with fua: %v", e)
	}
	f.fail = nil
	if e := p.Flush(); e != 0 {
		t.Errorf("the next flush: %v", e)
	}
}

// An error that passes is not seen; one that stays is, by its own request only.
func TestErrors(t *testing.T) {
	f, d := newFake(t, func(l *blockdev.Limits) { l.Queues, l.Depth = 1, 1 })
	p := d.Whole()
	times := 0
	f.fail = func(c *blockdev.Command) linux.Errno {
		if times++; times <= maxTries-1 {
			return linux.EIO
		}
		return 0
	}
	b := random(4096, 1)
	write(t, p, 0, b, false)
	if times != maxTries || !bytes.Equal(f.data[:4096], b) {
		t.Errorf("%d tries", times)
	}
	bad := uint64(40)
	f.fail = func(c *blockdev.Command) linux.Errno {
		if c.Op == blockdev.Write && c.Sector <= bad && bad < c.Sector+uint64(c.Sectors) {
			return linux.EIO
		}
		return 0
	}
	f.hold = true
	results := make([]linux.Errno, 10)
	var wg sync.WaitGroup
	for i := range results {
		frame, _ := mem.Alloc()
		wg.Add(1)
		d.Submit(&Request{Op: blockdev.Write, Sector: uint64(8 * i), Sectors: 8, Data: []blockdev.Segment{{Phys: frame.Phys(), Len: 4096}},
			Done: func(r *Request) { results[i] = r.Err; frame.Put(); wg.Done() }})
	}
	f.let()
	wg.Wait()
	for i, e := range results {
		if want := map[bool]linux.Errno{true: linux.EIO}[i == 5]; e != want {
			t.Errorf("request %d: %v, want %v", i, e, want)
		}
	}
	f.fail = func(*blockdev.Command) linux.Errno { return linux.EOPNOTSUPP }
	n := f.commands
	if e := p.Discard(0, 8); e != linux.EOPNOTSUPP || f.commands != n+1 {
		t.Errorf("what the device does not know: %v, %d commands", e, f.commands-n)
	}
}

// A command that does not come back: abort, reset, all again.
func TestTimeout(t *testing.T) {
	quick(t)
	f, d := newFake(t, nil)
	p := d.Whole()
	hangs := 0
	f.hang = func(c *blockdev.Command) bool {
		if c.Op == blockdev.Write && hangs < 2 {
			hangs++
			return true
		}
		return false
	}
	b := random(64<<10, 2)
	write(t, p, 0, b, true)
	if !bytes.Equal(f.stable[:len(b)], b) {
		t.Error("what was written is not on the disk")
	}
	f.mu.Lock()
	resets, aborts := f.resets, f.aborts
	f.mu.Unlock()
	if resets == 0 || aborts == 0 {
		t.Errorf("%d resets, %d aborts", resets, aborts)
	}
	f.hang = func(c *blockdev.Command) bool { return c.Op == blockdev.Read } // for ever
	if e := Move(p, blockdev.Read, []piece{{0, make([]byte, 512)}}, false); e != linux.EIO {
		t.Errorf("a read that never ends: %v", e)
	}
	f.hang = nil
	if !bytes.Equal(read(t, p, 0, len(b)), b) {
		t.Error("afterwards the disk is not usable")
	}
}

// A machine that skips idle time: 30 seconds by the one clock are nothing to the disk,
// and it is left alone; one that hangs by the second clock too is reset.
func TestSecondClock(t *testing.T) {
	quick(t)
	var second atomic.Int64
	SecondClock.Call = second.Load
	t.Cleanup(func() { SecondClock.Call = nil })
	f, d := newFake(t, nil)
	f.hang = func(c *blockdev.Command) bool { return f.resets == 0 }
	done := make(chan linux.Errno, 1)
	go func() { done <- Move(d.Whole(), blockdev.Read, []piece{{0, make([]byte, 512)}}, false) }()
	looked := func() int64 {
		d.watch.mu.Lock()
		defer d.watch.mu.Unlock()
		return d.watch.last
	}
	for end := wait.Now() + 3*int64(Timeout); looked() < end; time.Sleep(time.Millisecond) {
	}
	f.mu.Lock()
	if f.aborts+f.resets != 0 {
		t.Errorf("%d aborts, %d resets while the second clock stood still", f.aborts, f.resets)
	}
	f.mu.Unlock()
	for {
		select {
		case e := <-done:
			if e != 0 || f.resets == 0 {
				t.Errorf("%v after %d resets", e, f.resets)
			}
			return
		case <-time.After(time.Millisecond):
			second.Add(int64(Timeout) / 50)
		}
	}
}

// A device that cannot be reset is dead: everything fails at once, and memory
// that it may still write is not given out again.
func TestDead(t *testing.T) {
	quick(t)
	f, d := newFake(t, nil)
	p := d.Whole()
	f.hang = func(*blockdev.Command) bool { return true }
	f.resetErr = errors.New("no answer")
	frame, _ := mem.Alloc()
	if e := Move(p, blockdev.Read, []piece{{0, frame.Bytes()}}, false); e != linux.EIO {
		t.Errorf("read: %v", e)
	}
	if frame.Refs() != 2 {
		t.Errorf("%d references of memory that the device may still write", frame.Refs())
	}
	if !d.Dead() {
		t.Error("not dead")
	}
	n := f.commands
	if e := Move(p, blockdev.Write, []piece{{0, make([]byte, 512)}}, true); e != linux.EIO || f.commands != n {
		t.Errorf("write to a dead disk: %v", e)
	}
	if e := p.Flush(); e != linux.EIO {
		t.Errorf("flush of a dead disk: %v", e)
	}
}

// A device that says that it is gone is not waited for.
func TestGone(t *testing.T) {
	oldLog := Log
	Log = t.Logf
	defer func() { Log = oldLog }()
	f, d := newFake(t, nil)
	f.resetErr = errors.New("gone")
	f.fail = func(*blockdev.Command) linux.Errno { return linux.ENODEV }
	for range 20 {
		if e := Move(d.Whole(), blockdev.Read, []piece{{0, make([]byte, 512)}}, false); e != linux.EIO {
			t.Errorf("read: %v", e)
		}
	}
}

// Many goroutines at once, each in its own part of the disk, with errors now
// and then: what was acknowledged is there.
func TestConcurrent(t *testing.T) {
	f, d := newFake(t, nil)
	p := d.Whole()
	var n atomic.Int32
	f.fail = func(c *blockdev.Command) linux.Errno {
		if n.Add(1)%7 == 0 && c.Op != blockdev.Flush {
			return linux.EIO
		}
		return 0
	}
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			base := int64(g) << 20
			want := make([]byte, 1<<20)
			r := rand.New(rand.NewPCG(uint64(g), 1))
			for i := range 100 {
				off, size := 512*r.IntN(1900), 512*(1+r.IntN(100))
				b := random(size, uint64(g*1000+i))
				switch e := Move(p, blockdev.Write, []piece{{base + int64(off), b}}, i%10 == 0); e {
				case 0:
					copy(want[off:], b)
				case linux.EIO: // maxTries in a row: it is known what is there only when written again
					f.mu.Lock()
					copy(want[off:off+size], f.data[base+int64(off):])
					f.mu.Unlock()
				default:
					t.Errorf("write: %v", e)
				}
			}
			got := make([]byte, 1<<20)
			for e := linux.EIO; e == linux.EIO; {
				e = Move(p, blockdev.Read, []piece{{base, got}}, false)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("goroutine %d: the disk differs", g)
			}
		})
	}
	wg.Wait()
}

func TestRanges(t *testing.T) {
	f, d := newFake(t, func(l *blockdev.Limits) { l.MaxDiscard, l.MaxWriteZeroes = 100, 100 })
	p := d.Whole()
	write(t, p, 0, random(1<<20, 3), false)
	if e := p.WriteZeroes(8, 1000, true); e != 0 {
		t.Fatal(e)
	}
	if !bytes.Equal(f.data[8<<9:1008<<9], make([]byte, 1000<<9)) || f.data[8<<9-1] == 0 && f.data[1008<<9] == 0 {
		t.Error("zeroes in the wrong place")
	}
	if e := p.Discard(2000, p.Sectors); e != linux.EINVAL {
		t.Errorf("beyond the end: %v", e)
	}
}
