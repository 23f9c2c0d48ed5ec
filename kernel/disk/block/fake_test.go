package block

import (
	"slices"
	"sync"
	"testing"
	"time"

	"hardtack/abi/linux"
	"hardtack/kernel/base/mem"
	"hardtack/kernel/disk/blockdev"
)

// fake is a device in memory with a volatile cache: what was written reaches
// stable only at a flush or with FUA. It executes commands in goroutines, in any
// order, checks that they are as the limits say, and errs as it is told.
type fake struct {
	t      testing.TB
	limits blockdev.Limits
	done   func(int, []*blockdev.Command)

	mu       sync.Mutex
	data     []byte
	stable   []byte
	busy     [][]*blockdev.Command // a queue's commands
	seen     []string              // operations in order of submission
	commands int
	flushes  int
	fail     func(c *blockdev.Command) linux.Errno // nil: never
	hang     func(c *blockdev.Command) bool        // nil: never
	hold     bool                                  // nothing completes until let
	held     []func()
	resets   int
	resetErr error
	aborts   int
	gen      int
	working  sync.WaitGroup
}

func newFake(t testing.TB, change func(*blockdev.Limits)) (*fake, *Disk) {
	mem.InitHost(8192)
	f := &fake{t: t, limits: blockdev.Limits{
		Sectors: 32768, LogicalBlock: 512, PhysicalBlock: 4096, Queues: 2, Depth: 8,
		MaxSectors: 1024, MaxSegments: 16, WriteCache: true, MaxDiscard: 4096, MaxWriteZeroes: 4096,
	}}
	if change != nil {
		change(&f.limits)
	}
	f.data, f.stable = make([]byte, f.limits.Sectors<<9), make([]byte, f.limits.Sectors<<9)
	f.busy = make([][]*blockdev.Command, f.limits.Queues)
	d, err := New("fake", f)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.working.Wait)
	return f, d
}

func (f *fake) Limits() blockdev.Limits                   { return f.limits }
func (f *fake) Model() string                             { return "fake" }
func (f *fake) Serial() string                            { return "1" }
func (f *fake) Start(done func(int, []*blockdev.Command)) { f.done = done }

func (f *fake) Submit(queue int, cmds []*blockdev.Command) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, c := range cmds {
		if len(f.busy[queue]) >= f.limits.Depth {
			break
		}
		f.check(c)
		f.busy[queue] = append(f.busy[queue], c)
		f.commands++
		f.seen = append(f.seen, c.Op.String())
		n++
		if f.hang != nil && f.hang(c) {
			continue
		}
		gen := f.gen
		f.working.Add(1)
		run := func() {
			defer f.working.Done()
			f.execute(queue, c, gen)
		}
		if f.hold {
			f.held = append(f.held, run)
		} else {
			go run()
		}
	}
	return n
}

func (f *fake) check(c *blockdev.Command) {
	sum := uint32(0)
	for i, s := range c.Data {
		sum += s.Len
		if s.Len == 0 || s.Len%512 != 0 || f.limits.MaxSegment != 0 && s.Len > f.limits.MaxSegment {
			f.t.Errorf("%v: segment of %d bytes", c.Op, s.Len)
		}
		if f.limits.PageLists && (i > 0 && s.Phys%4096 != 0 || i < len(c.Data)-1 && (s.Phys+uint64(s.Len))%4096 != 0) {
			f.t.Errorf("%v: segment %d of %d at %#x, %d bytes: no list of pages", c.Op, i, len(c.Data), s.Phys, s.Len)
		}
	}
	if c.Op <= blockdev.Write && (sum != c.Sectors<<9 || c.Sectors > f.limits.MaxSectors || len(c.Data) > f.limits.MaxSegments || sum == 0) {
		f.t.Errorf("%v of %d sectors with %d bytes in %d segments", c.Op, c.Sectors, sum, len(c.Data))
	}
	if c.Sector+uint64(c.Sectors) > f.limits.Sectors {
		f.t.Errorf("%v beyond the end", c.Op)
	}
	if c.FUA && !f.limits.FUA {
		f.t.Error("FUA, which the device does not have")
	}
}

func (f *fake) execute(queue int, c *blockdev.Command, gen int) {
	f.mu.Lock()
	if f.gen != gen {
		f.mu.Unlock()
		return
	}
	f.busy[queue] = slices.DeleteFunc(f.busy[queue], func(o *blockdev.Command) bool { return o == c })
	c.Err = 0
	if f.fail != nil {
		c.Err = f.fail(c)
	}
	if c.Err == 0 {
		at := f.data[c.Sector<<9:]
		n := int(c.Sectors) << 9
		switch c.Op {
		case blockdev.Read, blockdev.Write:
			for _, s := range c.Data {
				for left, phys := int(s.Len), s.Phys; left > 0; {
					b := mem.FrameOf(phys).Bytes()[phys&4095:]
					b = b[:min(left, len(b))]
					if c.Op == blockdev.Read {
						copy(b, at)
					} else {
						copy(at, b)
					}
					at = at[len(b):]
					phys += uint64(len(b))
					left -= len(b)
				}
			}
			if c.FUA {
				copy(f.stable[c.Sector<<9:][:n], f.data[c.Sector<<9:])
			}
		case blockdev.Flush:
			copy(f.stable, f.data)
			f.flushes++
		case blockdev.WriteZeroes, blockdev.Discard:
			clear(at[:n])
		}
	}
	f.mu.Unlock()
	f.done(queue, []*blockdev.Command{c})
}

// let completes what is held.
func (f *fake) let() {
	f.mu.Lock()
	held := f.held
	f.held, f.hold = nil, false
	f.mu.Unlock()
	for _, run := range held {
		run()
	}
}

func (f *fake) Abort(int, *blockdev.Command) bool {
	f.mu.Lock()
	f.aborts++
	f.mu.Unlock()
	return false
}

func (f *fake) Reset() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.resets++
	f.gen++
	for i := range f.busy {
		f.busy[i] = nil
	}
	return f.resetErr
}

// quick makes time-outs short while the test runs.
func quick(t testing.TB) {
	old := Timeout
	Timeout = 500 * time.Millisecond
	t.Cleanup(func() { Timeout = old })
	oldLog := Log
	Log = t.Logf
	t.Cleanup(func() { Log = oldLog })
}

type piece struct {
	Off int64
	Buf []byte
}

func write(t testing.TB, p *Part, off int64, b []byte, fua bool) {
	t.Helper()
	if e := Move(p, blockdev.Write, []piece{{off, b}}, fua); e != 0 {
		t.Fatalf("write of %d bytes at %d: %v", len(b), off, e)
	}
}

func read(t testing.TB, p *Part, off int64, n int) []byte {
	t.Helper()
	b := make([]byte, n)
	if e := Move(p, blockdev.Read, []piece{{off, b}}, false); e != 0 {
		t.Fatalf("read of %d bytes at %d: %v", n, off, e)
	}
	return b
}
