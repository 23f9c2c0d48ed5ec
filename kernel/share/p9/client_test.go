package p9

import (
	"bytes"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/uio"
)

const (
	slots   = 4
	maxSize = 64<<10 + 4096
)

// server is a transport whose other side is a function: it gets a request and returns the
// reply, or nil for none.
type server struct {
	buffers [2 * slots][]byte
	done    func(slot, n int)
	answer  func(slot int, request []byte) []byte
	gone    atomic.Bool

	mu   sync.Mutex // one reply at a time, as in an interrupt
	late sync.WaitGroup
}

func newServer(answer func(slot int, request []byte) []byte) *server {
	s := &server{answer: answer}
	for i := range s.buffers {
		s.buffers[i] = make([]byte, maxSize+8<<10)
		if i >= slots {
			s.buffers[i] = make([]byte, 64)
		}
	}
	return s
}

func (s *server) Tag() string                  { return "folder" }
func (s *server) Slots() int                   { return slots }
func (s *server) MaxSize() int                 { return maxSize }
func (s *server) Buffer(slot int) []byte       { return s.buffers[slot] }
func (s *server) Start(done func(slot, n int)) { s.done = done }

func (s *server) Submit(slot, request, at, in int) bool {
	if s.gone.Load() {
		return false
	}
	s.late.Go(func() {
		r := s.answer(slot, bytes.Clone(s.buffers[slot][:request]))
		if r != nil {
			s.reply(slot, at, in, r)
		}
	})
	return true
}

// reply writes a reply as a device does that has in bytes of room.
func (s *server) reply(slot, at, in int, r []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done(slot, copy(s.buffers[slot][at:at+in], r))
}

// message makes a message with the tag of a request.
func message(kind uint8, request []byte, put func(e *encoder)) []byte {
	e := encoder{b: make([]byte, 128<<10)}
	e.u32(0)
	e.u8(kind)
	e.u16(le.Uint16(request[5:]))
	if put != nil {
		put(&e)
	}
	le.PutUint32(e.b, uint32(e.n))
	return e.b[:e.n]
}

func (e *encoder) qid(q QID) {
	e.u8(q.Type)
	e.u32(q.Version)
	e.u64(q.Path)
}

// putAttr is what Rgetattr has.
func putAttr(e *encoder, mode uint32, size uint64) {
	e.u64(basicAttrs)
	e.qid(QID{Path: 7})
	e.u32(mode)
	e.u32(1)
	e.u32(2)
	for _, v := range []uint64{1, 0, size, 4096, 8, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0} {
		e.u64(v)
	}
}

var content = bytes.Repeat([]byte("0123456789abcdef"), 20<<10)

// honest answers as a server should.
func honest(_ int, q []byte) []byte {
	kind := q[4]
	d := decoder{b: q[headerSize:]}
	switch kind {
	case tversion:
		size := d.u32()
		return message(kind+1, q, func(e *encoder) { e.u32(size); e.str(version) })
	case tattach:
		return message(kind+1, q, func(e *encoder) { e.qid(QID{Type: 0x80, Path: 1}) })
	case twalk:
		d.u64()
		n := d.u16()
		if n == 1 && d.str(100) == "missing" {
			return message(rlerror, q, func(e *encoder) { e.u32(uint32(linux.ENOENT)) })
		}
		return message(kind+1, q, func(e *encoder) {
			if e.u16(n); n == 1 {
				e.qid(QID{Path: 7})
			}
		})
	case tgetattr:
		return message(kind+1, q, func(e *encoder) { putAttr(e, linux.S_IFREG|0o644, uint64(len(content))) })
	case tread:
		d.u32()
		off := min(d.u64(), uint64(len(content)))
		n := min(uint64(d.u32()), uint64(len(content))-off)
		return message(kind+1, q, func(e *encoder) { e.u32(uint32(n)); copy(e.room(int(n)), content[off:]) })
	case twrite:
		d.u32()
		d.u64()
		n := d.u32()
		return message(kind+1, q, func(e *encoder) { e.u32(n) })
	case treadlink:
		return message(kind+1, q, func(e *encoder) { e.str("a/b") })
	case txattrwalk:
		return message(kind+1, q, func(e *encoder) { e.u64(3) })
	case treaddir:
		d.u32()
		off := d.u64()
		return message(kind+1, q, func(e *encoder) {
			at := e.n
			e.u32(0)
			for i := off; i < 3; i++ {
				e.qid(QID{Path: i})
				e.u64(i + 1)
				e.u8(linux.DT_REG)
				e.str(string(rune('a' + i)))
			}
			le.PutUint32(e.b[at:], uint32(e.n-at-4))
		})
	}
	return message(kind+1, q, nil)
}

// begin returns a client that has agreed with its server.
func begin(t testing.TB, s *server) (*Client, uint32) {
	c := New(s)
	root, q, e := c.Begin(nil, 1<<20)
	if e != 0 || q.Path != 1 && t != nil {
		t.Fatalf("begin: %v, %v", q, e)
	}
	return c, root
}

// TestRequests: what an honest server says arrives.
func TestRequests(t *testing.T) {
	s := newServer(honest)
	c, root := begin(t, s)
	if c.MaxData() != maxSize-overhead {
		t.Errorf("%d bytes at once", c.MaxData())
	}
	if _, _, e := c.Walk(nil, root, "missing"); e != linux.ENOENT {
		t.Errorf("a missing name: %v", e)
	}
	fid, q, e := c.Walk(nil, root, "file")
	if e != 0 || q.Path != 7 {
		t.Fatalf("walk: %v, %v", q, e)
	}
	var a Attr
	if e := c.Getattr(nil, fid, &a); e != 0 || a.Stat.Size != int64(len(content)) || a.Stat.Mode != linux.S_IFREG|0o644 || a.Stat.Mtime.Sec != 3 {
		t.Errorf("getattr: %+v, %v", a, e)
	}
	pages := [][]byte{make([]byte, 1000), make([]byte, 100000), make([]byte, 400000)}
	n, e := c.Read(nil, fid, pages, 5, 501000)
	if got := bytes.Join(pages, nil)[:n]; e != 0 || !bytes.Equal(got, content[5:]) {
		t.Errorf("read %d of %d, %v", n, len(content)-5, e)
	}
	if n, e := c.Write(nil, fid, pages, 0, 200000); n != 200000 || e != 0 {
		t.Errorf("write: %d, %v", n, e)
	}
	memory := make([]byte, 1000)
	if n, moved, e := c.ReadUser(nil, fid, uio.Bytes(memory), 5, 2000); n != 2000 || moved != 1000 || e != 0 || !bytes.Equal(memory, content[5:1005]) {
		t.Errorf("read to a user: %d, %d, %v", n, moved, e)
	}
	if gave, took, e := c.WriteUser(nil, fid, uio.Bytes(memory), 0, 2000); gave != 1000 || took != 1000 || e != 0 {
		t.Errorf("write of a user: %d, %d, %v", gave, took, e)
	}
	var nowhere uio.Vec
	nowhere.Init(noMemory{}, 0x1000, 100)
	if n, moved, e := c.ReadUser(nil, fid, &nowhere, 0, 100); n != 100 || moved != 0 || e != 0 {
		t.Errorf("read to pages with faults: %d, %d, %v", n, moved, e)
	}
	if gave, took, e := c.WriteUser(nil, fid, &nowhere, 0, 100); gave != 0 || took != 0 || e != 0 {
		t.Errorf("write of pages with faults: %d, %d, %v", gave, took, e)
	}
	names := ""
	if n, e := c.Readdir(nil, fid, 1, make([]byte, 4096), func(x *Dirent) bool { names += x.Name; return true }); n != 2 || e != 0 || names != "bc" {
		t.Errorf("readdir: %d, %q, %v", n, names, e)
	}
	if text, e := c.Readlink(nil, fid); text != "a/b" || e != 0 {
		t.Errorf("readlink: %q, %v", text, e)
	}
	if e := c.Mkdir(nil, root, string(make([]byte, 1<<17)), 0, 0); e != linux.ENAMETOOLONG {
		t.Errorf("a name that fits in no message: %v", e)
	}
}

// TestTogether: many use a client with few slots at once.
func TestTogether(t *testing.T) {
	s := newServer(honest)
	c, root := begin(t, s)
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			for range 20 {
				fid, _, e := c.Walk(nil, root, "file")
				if e != 0 {
					t.Error(e)
				}
				var a Attr
				if e := c.Getattr(nil, fid, &a); e != 0 || a.QID.Path != 7 {
					t.Error(a, e)
				}
				c.Clunk(fid)
			}
		})
	}
	all.Wait()
}

// hostile are servers that answer what nobody should believe.
var hostile = map[string]func(slot int, q []byte) []byte{
	"short":       func(_ int, q []byte) []byte { return honest(0, q)[:3] },
	"empty":       func(int, []byte) []byte { return []byte{} },
	"cut":         func(_ int, q []byte) []byte { return honest(0, q)[:9] },
	"wrong tag":   func(_ int, q []byte) []byte { r := honest(0, q); r[5]++; return r },
	"wrong type":  func(_ int, q []byte) []byte { r := honest(0, q); r[4]++; return r },
	"small size":  func(_ int, q []byte) []byte { r := honest(0, q); le.PutUint32(r, 2); return r },
	"large size":  func(_ int, q []byte) []byte { r := honest(0, q); le.PutUint32(r, 1<<31); return r },
	"no error":    func(_ int, q []byte) []byte { return message(rlerror, q, func(e *encoder) { e.u32(0) }) },
	"bad error":   func(_ int, q []byte) []byte { return message(rlerror, q, func(e *encoder) { e.u32(1 << 20) }) },
	"short error": func(_ int, q []byte) []byte { return message(rlerror, q, nil) },
	"all ones": func(_ int, q []byte) []byte {
		return message(q[4]+1, q, func(e *encoder) {
			for range 20000 {
				e.u64(^uint64(0))
			}
		})
	},
}

// TestHostile: a server's nonsense is an error, nothing else, and the client goes on.
func TestHostile(t *testing.T) {
	for name, answer := range hostile {
		t.Run(name, func(t *testing.T) {
			if _, _, e := New(newServer(answer)).Begin(nil, 1<<20); e == 0 {
				t.Error("begun")
			}
			s := newServer(honest)
			c, root := begin(t, s)
			s.answer = answer
			for op, e := range everything(c, root) {
				if e == 0 {
					t.Errorf("%s worked", op)
				}
			}
			s.answer = honest
			if _, _, e := c.Walk(nil, root, "file"); e != 0 {
				t.Errorf("afterwards: %v", e)
			}
		})
	}
}

// everything makes each request that has an answer.
func everything(c *Client, root uint32) map[string]linux.Errno {
	got := map[string]linux.Errno{}
	_, _, got["walk"] = c.Walk(nil, root, "file")
	got["getattr"] = c.Getattr(nil, root, new(Attr))
	page := make([]byte, 4096)
	_, got["read"] = c.Read(nil, root, [][]byte{page}, 0, 4096)
	_, got["write"] = c.Write(nil, root, [][]byte{page}, 0, 4096)
	_, _, got["read to a user"] = c.ReadUser(nil, root, uio.Bytes(page), 0, 4096)
	_, _, got["write of a user"] = c.WriteUser(nil, root, uio.Bytes(page), 0, 4096)
	_, got["readdir"] = c.Readdir(nil, root, 0, page, func(*Dirent) bool { return true })
	_, got["readlink"] = c.Readlink(nil, root)
	_, _, got["xattr"] = c.XattrWalk(nil, root, "user.x")
	return got
}

// TestKilled: a caller that is killed does not wait; its slot is used again once the
// reply has come, and what the request had opened is closed.
func TestKilled(t *testing.T) {
	var killed atomic.Bool
	was := caller.OnKilled
	caller.OnKilled.Call = func(c *caller.Ctx) bool { return killed.Load() }
	defer func() { caller.OnKilled = was }()
	var flushed, clunked, walks atomic.Int32
	hold := make(chan struct{})
	s := newServer(honest)
	c, root := begin(t, s)
	s.answer = func(slot int, q []byte) []byte {
		switch q[4] {
		case tflush:
			if int(le.Uint16(q[headerSize:])) == slot-slots {
				flushed.Add(1)
			}
		case tclunk:
			clunked.Add(1)
		case twalk:
			walks.Add(1)
			<-hold
		}
		return honest(slot, q)
	}
	var all sync.WaitGroup
	for range 2 * slots { // half of them have no slot
		all.Go(func() {
			ctx := caller.NewKernelCtx()
			ctx.Mem = noMemory{}
			stop := make(chan struct{})
			go func() {
				for {
					select {
					case <-stop:
						return
					case <-time.After(time.Millisecond):
						ctx.SetInterrupted(true)
					}
				}
			}()
			if _, _, e := c.Walk(ctx, root, "file"); e != linux.EINTR {
				t.Errorf("killed: %v", e)
			}
			close(stop)
		})
	}
	for walks.Load() < slots {
		time.Sleep(time.Millisecond)
	}
	killed.Store(true)
	all.Wait()
	for end := time.Now().Add(time.Minute); flushed.Load() < slots && time.Now().Before(end); {
		time.Sleep(time.Millisecond) // the server may not have read them yet
	}
	killed.Store(false)
	close(hold)
	s.answer = honest2(&clunked)
	for range 10 * slots { // all slots are back
		if e := c.Getattr(nil, root, new(Attr)); e != 0 {
			t.Fatal(e)
		}
	}
	for end := time.Now().Add(time.Minute); clunked.Load() < slots && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	if flushed.Load() != slots || clunked.Load() != slots {
		t.Errorf("%d flushed, %d clunked; want %d", flushed.Load(), clunked.Load(), slots)
	}
}

// honest2 is honest and counts what is clunked.
func honest2(clunked *atomic.Int32) func(int, []byte) []byte {
	return func(slot int, q []byte) []byte {
		if q[4] == tclunk {
			clunked.Add(1)
		}
		return honest(slot, q)
	}
}

// noMemory is an address space that a thread has.
type noMemory struct{}

func (noMemory) CopyIn([]byte, uio.Addr) (int, linux.Errno)  { return 0, linux.EFAULT }
func (noMemory) CopyOut(uio.Addr, []byte) (int, linux.Errno) { return 0, linux.EFAULT }

// TestGone: when the device breaks everybody hears of it.
func TestGone(t *testing.T) {
	s := newServer(honest)
	c, root := begin(t, s)
	s.answer = func(int, []byte) []byte { return nil }
	var all sync.WaitGroup
	for range 3 * slots {
		all.Go(func() {
			if _, _, e := c.Walk(nil, root, "file"); e != linux.EIO {
				t.Errorf("%v", e)
			}
		})
	}
	for { // until all slots are in use
		c.mu.Lock()
		n := len(c.free)
		c.mu.Unlock()
		if n == 0 {
			break
		}
		time.Sleep(time.Millisecond)
	}
	s.gone.Store(true)
	s.mu.Lock()
	s.done(-1, 0)
	s.mu.Unlock()
	all.Wait()
	if _, _, e := c.Walk(nil, root, "file"); e != linux.EIO {
		t.Errorf("afterwards: %v", e)
	}
}

// FuzzReplies: whatever a server answers, requests end, and no panic.
func FuzzReplies(f *testing.F) {
	f.Add(uint8(tgetattr+1), []byte{1, 2, 3})
	f.Add(uint8(rlerror), []byte{5, 0, 0, 0})
	f.Add(uint8(treaddir+1), []byte{24, 0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0})
	f.Add(uint8(tread+1), bytes.Repeat([]byte{255}, 64))
	f.Fuzz(func(t *testing.T, kind uint8, body []byte) {
		s := newServer(honest)
		c, root := begin(t, s)
		s.answer = func(_ int, q []byte) []byte {
			is := kind
			if kind == 0 {
				is = q[4] + 1
			}
			return message(is, q, func(e *encoder) { copy(e.room(min(len(body), 4096)), body) })
		}
		everything(c, root)
		s.late.Wait()
	})
}
