package pipe

import (
	"bytes"
	"math/rand"
	"sync"
	"testing"
	"time"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/mem"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/base/wait"
	"hardtack/kernel/fs/vfs"
)

func TestMain(m *testing.M) {
	mem.InitHost(4096)
	m.Run()
}

func read(c *caller.Ctx, f *vfs.File, b []byte) (int, linux.Errno) {
	c.Vec.InitBytes(b)
	return f.Ops.Read(c, f, &c.Vec, 0)
}

func write(c *caller.Ctx, f *vfs.File, b []byte) (int, linux.Errno) {
	c.Vec.InitBytes(b)
	return f.Ops.Write(c, f, &c.Vec, 0)
}

// pattern is the stream every test writes: byte i tells its position.
func pattern(from, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		x := uint32(from+i) * 2654435761
		b[i] = byte(x >> 24)
	}
	return b
}

// modelPipe is what a pipe holds, buffer by buffer.
type modelPipe struct {
	buffers []modelBuffer
	most    int
	bytes   []byte
}

type modelBuffer struct{ off, n int }

// write returns how much of n bytes goes in.
func (m *modelPipe) write(n int) (done int) {
	if rest := n % page; rest > 0 && len(m.buffers) > 0 {
		if last := &m.buffers[len(m.buffers)-1]; last.off+last.n+rest <= page {
			last.n += rest
			done = rest
		}
	}
	for done < n && len(m.buffers) < m.most {
		k := min(n-done, page)
		m.buffers = append(m.buffers, modelBuffer{0, k})
		done += k
	}
	return done
}

func (m *modelPipe) read(n int) (done int) {
	for done < n && len(m.buffers) > 0 {
		first := &m.buffers[0]
		k := min(n-done, first.n)
		first.off += k
		first.n -= k
		if done += k; first.n == 0 {
			m.buffers = m.buffers[1:]
		}
	}
	return done
}

// A pipe without blocking behaves like a queue of bytes in buffers of a page.
func TestAgainstModel(t *testing.T) {
	c := caller.NewKernelCtx()
	before, charged := mem.Available(), inPipes.Get().Used()
	r, w, _ := Pair(c, linux.O_NONBLOCK)
	p := PipeOf(r)
	rnd := rand.New(rand.NewSource(1))
	m := modelPipe{most: DefaultSize / page}
	written := 0
	size := func() int {
		switch rnd.Intn(4) {
		case 0:
			return 1 + rnd.Intn(9)
		case 1:
			return linux.PIPE_BUF - 2 + rnd.Intn(4)
		case 2:
			return 1 + rnd.Intn(3*linux.PIPE_BUF)
		}
		return 1 + rnd.Intn(100000)
	}
	check := func(step int, what string, got int, e linux.Errno, want int) {
		t.Helper()
		wantErr := linux.Errno(0)
		if want == 0 {
			wantErr = linux.EAGAIN
		}
		if got != want || e != wantErr {
			t.Fatalf("step %d: %s with %v of %d: %d %v, want %d", step, what, m.buffers, m.most, got, e, want)
		}
	}
	for step := 0; step < 20000; step++ {
		switch k := rnd.Intn(100); {
		case k < 48:
			b := pattern(written, size())
			got, e := write(c, w, b)
			check(step, "write", got, e, m.write(len(b)))
			m.bytes = append(m.bytes, b[:got]...)
			written += got
		case k < 98:
			b := make([]byte, size())
			got, e := read(c, r, b)
			check(step, "read", got, e, m.read(len(b)))
			if !bytes.Equal(b[:got], m.bytes[:got]) {
				t.Fatalf("step %d: damaged", step)
			}
			m.bytes = m.bytes[got:]
		default:
			n := 1 << rnd.Intn(8)
			got, e := p.SetSize(c, uint64(n*page-rnd.Intn(100)))
			if n < len(m.buffers) {
				if e != linux.EBUSY {
					t.Fatalf("SetSize %d with %d used: %v", n, len(m.buffers), e)
				}
			} else if e != 0 || got != n*page {
				t.Fatalf("SetSize %d: %d %v", n, got, e)
			} else {
				m.most = n
			}
		}
		if in, out := r.Ops.Ready(r)&wait.In != 0, w.Ops.Ready(w)&wait.Out != 0; in != (len(m.buffers) > 0) || out != (len(m.buffers) < m.most) {
			t.Fatalf("step %d: ready %v %v with %v of %d", step, in, out, m.buffers, m.most)
		}
	}
	r.Put()
	w.Put()
	if n := mem.Available(); n != before || inPipes.Get().Used() != charged {
		t.Fatalf("%d frames lost, %d charged", before-n, inPipes.Get().Used()-charged)
	}
}

func TestPackets(t *testing.T) {
	c := caller.NewKernelCtx()
	r, w, _ := Pair(c, linux.O_NONBLOCK|linux.O_DIRECT)
	write(c, w, []byte("hello"))
	write(c, w, []byte("wide world"))
	w.UpdateFlags(linux.O_DIRECT, 0)
	write(c, w, []byte("stream"))
	write(c, w, []byte("ed"))
	w.UpdateFlags(linux.O_DIRECT, linux.O_DIRECT)
	if n, e := write(c, w, pattern(0, 5000)); n != 5000 || e != 0 {
		t.Fatal(n, e)
	}
	b := make([]byte, 6000)
	for _, k := range []struct {
		n    int
		want string
	}{{100, "hello"}, {4, "wide"}, {3, "str"}} {
		n, e := read(c, r, b[:k.n])
		if e != 0 || string(b[:n]) != k.want {
			t.Fatalf("got %q %v, want %q", b[:n], e, k.want)
		}
	}
	for _, want := range []int{5 + 904 + 4096} { // what is beyond a page went behind the stream
		if n, e := read(c, r, b); n != want || e != 0 {
			t.Fatal(n, e, want)
		}
	}
	for i := 0; ; i++ {
		if n, e := write(c, w, []byte("x")); e == linux.EAGAIN {
			if i != DefaultSize/page {
				t.Fatal(i, "packets fit")
			}
			break
		} else if n != 1 {
			t.Fatal(n, e)
		}
	}
	if w.Ops.Ready(w)&wait.Out != 0 {
		t.Fatal("writable with all packets used")
	}
}

// Atomic writes of several writers never mix, and nothing is lost or doubled,
// with readers and writers that block.
func TestAtomicityAndBlocking(t *testing.T) {
	c := caller.NewKernelCtx()
	r, w, _ := Pair(c, 0)
	const writers, records, size = 4, 400, 1000
	var wg sync.WaitGroup
	for id := 0; id < writers; id++ {
		wg.Add(1)
		go func() {
			defer wg.Done()
			c := caller.NewKernelCtx()
			for i := 0; i < records; i++ {
				rec := bytes.Repeat([]byte{byte(id)}, size)
				if n, e := write(c, w, rec); n != size || e != 0 {
					t.Error(n, e)
				}
			}
		}()
	}
	go func() { wg.Wait(); w.Put() }()
	var got []byte
	b := make([]byte, 7001)
	for {
		n, e := read(c, r, b)
		if e != 0 {
			t.Fatal(e)
		}
		if n == 0 {
			break
		}
		got = append(got, b[:n]...)
	}
	if len(got) != writers*records*size {
		t.Fatal(len(got), "bytes")
	}
	for i := 0; i < len(got); i += size {
		if bytes.Count(got[i:i+size], got[i:i+1]) != size {
			t.Fatal("record torn at", i)
		}
	}
}

func TestLargeWriteBlocksUntilRead(t *testing.T) {
	c := caller.NewKernelCtx()
	r, w, _ := Pair(c, 0)
	const total = 1 << 20
	go func() {
		c := caller.NewKernelCtx()
		if n, e := write(c, w, pattern(0, total)); n != total || e != 0 {
			t.Error(n, e)
		}
		w.Put()
	}()
	var got []byte
	b := make([]byte, 10000)
	for {
		n, _ := read(c, r, b)
		if n == 0 {
			break
		}
		got = append(got, b[:n]...)
	}
	if !bytes.Equal(got, pattern(0, total)) {
		t.Fatal("stream damaged", len(got))
	}
}

func TestBrokenPipe(t *testing.T) {
	var sent int
	nobody := caller.OnSignalSelf.Call
	caller.OnSignalSelf.Call = func(_ *caller.Ctx, sig int) { sent = sig }
	defer func() { caller.OnSignalSelf.Call = nobody }()
	c := caller.NewKernelCtx()
	r, w, _ := Pair(c, 0)
	done := make(chan linux.Errno)
	go func() {
		c := caller.NewKernelCtx()
		for {
			if _, e := write(c, w, make([]byte, 4000)); e != 0 {
				done <- e
				return
			}
		}
	}()
	time.Sleep(5 * time.Millisecond)
	r.Put()
	if e := <-done; e != linux.EPIPE || sent != 13 {
		t.Fatal(e, sent)
	}
	if ev := w.Ops.Ready(w); ev&wait.Err == 0 {
		t.Fatal(ev)
	}
}

func TestSignalEndsWait(t *testing.T) {
	c := caller.NewKernelCtx()
	r, w, _ := Pair(c, 0)
	go func() {
		time.Sleep(2 * time.Millisecond)
		c.SetInterrupted(true)
	}()
	b := make([]byte, 10)
	if n, e := read(c, r, b); n != 0 || e != linux.ERESTARTSYS {
		t.Fatal(n, e)
	}
	// Data that is there wins over the signal.
	write(caller.NewKernelCtx(), w, []byte("ab"))
	if n, e := read(c, r, b); n != 2 || e != 0 {
		t.Fatal(n, e)
	}
	// A write that moved something reports that.
	if n, e := write(c, w, make([]byte, 100000)); n != DefaultSize || e != 0 {
		t.Fatal(n, e)
	}
}

// faulty is memory of which the bytes from 100 on cannot be reached.
type faulty struct{}

func (faulty) CopyIn(d []byte, a uio.Addr) (int, linux.Errno) {
	if n := max(0, 100-int(a)); n < len(d) {
		return n, linux.EFAULT
	}
	return len(d), 0
}
func (f faulty) CopyOut(a uio.Addr, s []byte) (int, linux.Errno) { return f.CopyIn(s, a) }

func TestFaults(t *testing.T) {
	c := caller.NewKernelCtx()
	r, w, _ := Pair(c, linux.O_NONBLOCK)
	c.Vec.Init(faulty{}, 50, 200)
	if n, e := w.Ops.Write(c, w, &c.Vec, 0); n != 0 || e != linux.EFAULT {
		t.Fatal(n, e)
	}
	if r.Ops.Ready(r) != 0 {
		t.Fatal("half of an atomic write stayed")
	}
	write(c, w, make([]byte, 200))
	c.Vec.Init(faulty{}, 50, 200)
	if n, e := r.Ops.Read(c, r, &c.Vec, 0); n != 0 || e != linux.EFAULT {
		t.Fatal(n, e)
	}
	c.Vec.Init(faulty{}, 100, 200)
	if n, e := r.Ops.Read(c, r, &c.Vec, 0); n != 0 || e != linux.EFAULT {
		t.Fatal(n, e)
	}
	if n, e := read(c, r, make([]byte, 300)); n != 200 || e != 0 {
		t.Fatal(n, e)
	}
}

func TestFifoOpen(t *testing.T) {
	c := caller.NewKernelCtx()
	p := New(c)
	if _, e := p.Open(c, linux.O_WRONLY|linux.O_NONBLOCK); e != linux.ENXIO {
		t.Fatal(e)
	}
	ro, e := p.Open(c, linux.O_RDONLY|linux.O_NONBLOCK)
	if e != 0 {
		t.Fatal(e)
	}
	if ev := ro.Ready(nil); ev != 0 {
		t.Fatal("hang-up before there was a writer", ev)
	}
	ro.Release(nil)

	opened := make(chan vfs.Ops)
	go func() {
		x, e := p.Open(caller.NewKernelCtx(), linux.O_RDONLY)
		if e != 0 {
			t.Error(e)
		}
		opened <- x
	}()
	select {
	case <-opened:
		t.Fatal("opened without a writer")
	case <-time.After(5 * time.Millisecond):
	}
	wo, e := p.Open(c, linux.O_WRONLY)
	if e != 0 {
		t.Fatal(e)
	}
	ro = <-opened
	wf, rf := vfs.NewFile(wo, linux.O_WRONLY), vfs.NewFile(ro, linux.O_RDONLY)
	write(c, wf, []byte("z"))
	wf.Put()
	if ev := ro.Ready(rf); ev&wait.Hup == 0 || ev&wait.In == 0 {
		t.Fatal(ev)
	}
	b := make([]byte, 4)
	if n, e := read(c, rf, b); n != 1 || e != 0 {
		t.Fatal(n, e)
	}
	if n, e := read(c, rf, b); n != 0 || e != 0 {
		t.Fatal(n, e)
	}
	rf.Put()
	c.SetInterrupted(true)
	if _, e := p.Open(c, linux.O_RDONLY); e != linux.ERESTARTSYS {
		t.Fatal(e)
	}
	if p.readers != 0 || p.writers != 0 {
		t.Fatal(p.readers, p.writers)
	}
}

func TestSmallMessagesDoNotAllocate(t *testing.T) {
	c := caller.NewKernelCtx()
	r, w, _ := Pair(c, 0)
	b := make([]byte, 5)
	if n := testing.AllocsPerRun(100, func() {
		write(c, w, b)
		read(c, r, b)
	}); n != 0 {
		t.Fatal(n)
	}
}

func BenchmarkWriteRead5(b *testing.B) {
	c := caller.NewKernelCtx()
	r, w, _ := Pair(c, 0)
	buf := make([]byte, 5)
	for b.Loop() {
		write(c, w, buf)
		read(c, r, buf)
	}
}

func BenchmarkRoundTrip5(b *testing.B) {
	c := caller.NewKernelCtx()
	r1, w1, _ := Pair(c, 0)
	r2, w2, _ := Pair(c, 0)
	go func() {
		c := caller.NewKernelCtx()
		buf := make([]byte, 5)
		for {
			if n, _ := read(c, r1, buf); n == 0 {
				return
			}
			write(c, w2, buf)
		}
	}()
	buf := make([]byte, 5)
	for b.Loop() {
		write(c, w1, buf)
		read(c, r2, buf)
	}
	w1.Put()
}

func TestSpliceAndTee(t *testing.T) {
	c := caller.NewKernelCtx()
	r1, w1, _ := Pair(c, linux.O_NONBLOCK)
	r2, w2, _ := Pair(c, linux.O_NONBLOCK)
	p, q := PipeOf(r1), PipeOf(r2)
	if _, e := Tee(c, p, q, 10, true, true); e != linux.EAGAIN {
		t.Fatal(e)
	}
	write(c, w1, pattern(0, 50000))
	if n, e := Tee(c, p, q, 20000, true, false); n != 20000 || e != 0 {
		t.Fatal(n, e)
	}
	if n, e := Tee(c, p, q, 60000, true, true); n != 45056 || e != 0 {
		t.Fatal(n, e) // what there is room for: eleven buffers
	}
	if _, e := Tee(c, p, q, 60000, true, true); e != linux.EAGAIN {
		t.Fatal(e)
	}
	b := make([]byte, 70000)
	n, _ := read(c, r2, b)
	if n != 65056 || !bytes.Equal(b[:20000], pattern(0, 20000)) || !bytes.Equal(b[20000:n], pattern(0, 45056)) {
		t.Fatal("damaged", n)
	}
	// A reader of bytes in place may take less than it is shown.
	var got []byte
	n, e := p.SpliceTo(c, 4000, true, func(b []byte) (int, linux.Errno) {
		k := min(len(b), 1500)
		got = append(got, b[:k]...)
		return k, 0
	})
	if n != len(got) || e != 0 || !bytes.Equal(got, pattern(45056, n)) {
		t.Fatal(n, e)
	}
	if m, e := read(c, r1, b); m != 50000-45056-n || e != 0 || !bytes.Equal(b[:m], pattern(45056+n, m)) {
		t.Fatal(m, e)
	}
	w1.Put()
	if n, e := p.SpliceTo(c, 10, false, nil); n != 0 || e != 0 {
		t.Fatal(n, e)
	}
	r2.Put()
	if _, e := q.AwaitRoom(c, true); e != linux.EPIPE {
		t.Fatal(e)
	}
	r1.Put()
	w2.Put()
}
