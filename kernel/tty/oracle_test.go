package tty

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/base/wait"
	"hardtack/kernel/fs/vfs"
)

// terminal is a pseudo-terminal, ours or the host's, with calls that do not block.
type terminal interface {
	typeIn(b []byte) (int, linux.Errno)      // master write
	shown(n int) ([]byte, linux.Errno)       // master read
	read(n int) ([]byte, linux.Errno)        // slave read
	write(b []byte) (int, linux.Errno)       // slave write
	set(cmd uint32, k *linux.Termios)        // slave TCSETS…
	get() linux.Termios                      // slave TCGETS2
	ctl(cmd uint32, arg uint64) linux.Errno  // slave ioctl with a number
	mctl(cmd uint32, arg uint32) linux.Errno // master ioctl with a pointer to a number
	unread() int                             // slave FIONREAD
	poll() (master, slave wait.Events)
}

var _, _ terminal = (*ours)(nil), (*host)(nil)

// flat is user memory from address 0 on.
type flat []byte

func (m flat) CopyIn(d []byte, a uio.Addr) (int, linux.Errno)  { return copy(d, m[a:]), 0 }
func (m flat) CopyOut(a uio.Addr, s []byte) (int, linux.Errno) { return copy(m[a:], s), 0 }

func encode(k *linux.Termios) []byte {
	b := make([]byte, linux.SizeofTermios2)
	for i, f := range []uint32{k.Iflag, k.Oflag, k.Cflag, k.Lflag} {
		binary.LittleEndian.PutUint32(b[4*i:], f)
	}
	b[16] = k.Line
	copy(b[17:36], k.Cc[:])
	binary.LittleEndian.PutUint32(b[36:], k.Ispeed)
	binary.LittleEndian.PutUint32(b[40:], k.Ospeed)
	return b
}

func decode(b []byte) (k linux.Termios) {
	for i, f := range []*uint32{&k.Iflag, &k.Oflag, &k.Cflag, &k.Lflag} {
		*f = binary.LittleEndian.Uint32(b[4*i:])
	}
	k.Line = b[16]
	copy(k.Cc[:], b[17:36])
	k.Ispeed, k.Ospeed = binary.LittleEndian.Uint32(b[36:]), binary.LittleEndian.Uint32(b[40:])
	return k
}

// ours is the kernel's.
type ours struct {
	c    *caller.Ctx
	mem  flat
	m, s *vfs.File
}

func newOurs(t testing.TB) *ours {
	o := &ours{c: caller.NewKernelCtx(), mem: make(flat, 256)}
	o.c.Mem = o.mem
	ops, e := OpenMaster(o.c, 0)
	if e != 0 {
		t.Fatal(e)
	}
	o.m = vfs.NewFile(ops, linux.O_RDWR|linux.O_NONBLOCK)
	o.mctl(linux.TIOCSPTLCK, 0)
	if ops, e = openSlave(o.c, ops.(*master).p.n, linux.O_RDWR); e != 0 {
		t.Fatal(e)
	}
	o.s = vfs.NewFile(ops, linux.O_RDWR|linux.O_NONBLOCK)
	return o
}

func (o *ours) rd(f *vfs.File, n int) ([]byte, linux.Errno) {
	b := make([]byte, n)
	n, e := f.Ops.Read(o.c, f, uio.Bytes(b), 0)
	return b[:n], e
}
func (o *ours) typeIn(b []byte) (int, linux.Errno) { return o.m.Ops.Write(o.c, o.m, uio.Bytes(b), 0) }
func (o *ours) write(b []byte) (int, linux.Errno)  { return o.s.Ops.Write(o.c, o.s, uio.Bytes(b), 0) }
func (o *ours) shown(n int) ([]byte, linux.Errno)  { return o.rd(o.m, n) }
func (o *ours) read(n int) ([]byte, linux.Errno)   { return o.rd(o.s, n) }
func (o *ours) poll() (master, slave wait.Events)  { return o.m.Ops.Ready(o.m), o.s.Ops.Ready(o.s) }
func (o *ours) set(cmd uint32, k *linux.Termios)   { copy(o.mem, encode(k)); o.ctl(cmd, 0) }
func (o *ours) get() linux.Termios                 { o.ctl(linux.TCGETS2, 0); return decode(o.mem) }
func (o *ours) ctl(cmd uint32, a uint64) linux.Errno {
	_, e := o.s.Ops.Ioctl(o.c, o.s, cmd, a)
	return e
}
func (o *ours) mctl(cmd uint32, v uint32) linux.Errno {
	binary.LittleEndian.PutUint32(o.mem, v)
	_, e := o.m.Ops.Ioctl(o.c, o.m, cmd, 0)
	return e
}
func (o *ours) unread() int {
	o.ctl(linux.FIONREAD, 0)
	return int(binary.LittleEndian.Uint32(o.mem))
}

// host is the host's.
type host struct {
	m, s  int
	pause time.Duration // for its work queues
}

func newHost(t testing.TB) *host {
	m, err := syscall.Open("/dev/ptmx", syscall.O_RDWR|syscall.O_NOCTTY|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
	if err != nil {
		t.Skip("the host has no pseudo-terminals:", err)
	}
	h := &host{m: m, pause: 300 * time.Microsecond}
	h.mctl(linux.TIOCSPTLCK, 0)
	s, _, errno := syscall.Syscall(syscall.SYS_IOCTL, uintptr(m), linux.TIOCGPTPEER, syscall.O_RDWR|syscall.O_NOCTTY|syscall.O_NONBLOCK)
	if errno != 0 {
		t.Skip("the host does not open the slave:", errno)
	}
	h.s = int(s)
	t.Cleanup(func() { syscall.Close(h.s); syscall.Close(h.m) })
	return h
}

func errnoOf(err error) linux.Errno {
	if e, ok := err.(syscall.Errno); ok {
		return linux.Errno(e)
	}
	return 0
}
func (h *host) rd(fd, n int) ([]byte, linux.Errno) {
	b := make([]byte, n)
	n, err := syscall.Read(fd, b)
	return b[:max(n, 0)], errnoOf(err)
}
func (h *host) wr(fd int, b []byte) (int, linux.Errno) {
	n, err := syscall.Write(fd, b)
	h.settle()
	return max(n, 0), errnoOf(err)
}
func (h *host) typeIn(b []byte) (int, linux.Errno) { return h.wr(h.m, b) }
func (h *host) write(b []byte) (int, linux.Errno)  { return h.wr(h.s, b) }
func (h *host) read(n int) ([]byte, linux.Errno)   { return h.rd(h.s, n) }

// shown reads all there is: the host hands output over in pieces.
func (h *host) shown(n int) (out []byte, e linux.Errno) {
	h.settle()
	for len(out) < n {
		b, err := h.rd(h.m, n-len(out))
		if len(b) == 0 {
			if len(out) == 0 {
				e = err
			}
			break
		}
		out = append(out, b...)
	}
	return out, e
}

type pollFD struct {
	fd              int32
	events, revents int16
}

// poll makes the host's work queues finish, too.
func (h *host) poll() (master, slave wait.Events) {
	fds := []pollFD{{fd: int32(h.m), events: 0x7}, {fd: int32(h.s), events: 0x7}}
	syscall.Syscall(syscall.SYS_POLL, uintptr(unsafe.Pointer(&fds[0])), 2, 0)
	return wait.Events(fds[0].revents), wait.Events(fds[1].revents)
}
func (h *host) settle() {
	if _, s := h.poll(); s&wait.In != 0 {
		time.Sleep(h.pause) // poll finishes nothing when there is input
	}
	h.poll()
}
func (h *host) ioctl(fd int, cmd uint32, a uintptr) linux.Errno {
	_, _, e := syscall.Syscall(syscall.SYS_IOCTL, uintptr(fd), uintptr(cmd), a)
	return linux.Errno(e)
}
func (h *host) set(cmd uint32, k *linux.Termios) {
	b := encode(k)
	h.ioctl(h.s, cmd, uintptr(unsafe.Pointer(&b[0])))
}
func (h *host) get() linux.Termios {
	b := make([]byte, linux.SizeofTermios2)
	h.ioctl(h.s, linux.TCGETS2, uintptr(unsafe.Pointer(&b[0])))
	return decode(b)
}
func (h *host) ctl(cmd uint32, a uint64) linux.Errno { return h.ioctl(h.s, cmd, uintptr(a)) }
func (h *host) mctl(cmd uint32, v uint32) linux.Errno {
	return h.ioctl(h.m, cmd, uintptr(unsafe.Pointer(&v)))
}
func (h *host) unread() int {
	var v uint32
	h.ioctl(h.s, linux.FIONREAD, uintptr(unsafe.Pointer(&v)))
	return int(v)
}

// both does the same to ours and the host's and stops where they differ.
type both struct {
	t      *testing.T
	a      *ours
	b      *host
	log    []string
	stop   bool
	report string // what differed
}

func (x *both) logf(f string, args ...any) {
	x.log = append(x.log, fmt.Sprintf(f, args...))
	if len(x.log) > 40 {
		x.log = x.log[1:]
	}
}

func (x *both) differ(what string, ours, host any) {
	x.t.Helper()
	x.stop = true
	k := x.b.get()
	x.report = fmt.Sprintf("%s: ours %q, host's %q\nmodes i=%#o o=%#o l=%#o cc=%q\n%s", what, ours, host, k.Iflag, k.Oflag, k.Lflag, k.Cc[:], strings.Join(x.log, "\n"))
}

func (x *both) typeIn(s string) {
	x.t.Helper()
	x.logf("type %q", s)
	n, e := x.a.typeIn([]byte(s))
	m, f := x.b.typeIn([]byte(s))
	if n != m || e != f {
		x.differ("typed", fmt.Sprint(n, e), fmt.Sprint(m, f))
	}
}

func (x *both) write(s string) {
	x.t.Helper()
	x.logf("write %q", s)
	n, e := x.a.write([]byte(s))
	m, f := x.b.write([]byte(s))
	if n != m || e != f {
		x.differ("written", fmt.Sprint(n, e), fmt.Sprint(m, f))
	}
}

// await gives the host's work queues time to come to our state.
func (x *both) await(same func() bool) {
	for end := time.Now().Add(300 * time.Millisecond); !same() && time.Now().Before(end); {
		time.Sleep(50 * time.Microsecond)
	}
}

func (x *both) read(n int) string {
	x.t.Helper()
	x.await(func() bool { x.b.settle(); return x.a.unread() == x.b.unread() })
	b, f := x.b.read(n)
	a, e := x.a.read(n)
	x.logf("read %d: %q %v", n, b, f)
	if !bytes.Equal(a, b) || e != f {
		x.differ(fmt.Sprintf("read %d", n), fmt.Sprintf("%q %v", a, e), fmt.Sprintf("%q %v", b, f))
	}
	return string(a)
}

func (x *both) shown() string {
	x.t.Helper()
	a, e := x.a.shown(16384)
	var b []byte
	var f linux.Errno
	x.await(func() bool {
		more, err := x.b.shown(16384)
		if b = append(b, more...); len(b) == 0 {
			f = err
		} else {
			f = 0
		}
		return len(b) >= len(a)
	})
	x.logf("shown %q %v", b, f)
	if !bytes.Equal(a, b) || e != f {
		x.differ("shown", fmt.Sprintf("%q %v", a, e), fmt.Sprintf("%q %v", b, f))
	}
	return string(a)
}

func (x *both) set(cmd uint32, k linux.Termios) {
	x.t.Helper()
	x.logf("set %#x i=%#o o=%#o l=%#o", cmd, k.Iflag, k.Oflag, k.Lflag)
	x.a.set(cmd, &k)
	x.b.set(cmd, &k)
	if a, b := x.a.get(), x.b.get(); a != b {
		x.differ("modes", fmt.Sprintf("%+v", a), fmt.Sprintf("%+v", b))
	}
}

func (x *both) state() {
	x.t.Helper()
	const mask = wait.In | wait.Hup | wait.Pri | wait.Err
	am, as := x.a.poll()
	var bm, bs wait.Events
	x.await(func() bool {
		bm, bs = x.b.poll()
		return am&mask == bm&mask && as&mask == bs&mask && x.a.unread() == x.b.unread()
	})
	if am&mask != bm&mask || as&mask != bs&mask {
		x.differ("poll master, slave", fmt.Sprintf("%x %x", am, as), fmt.Sprintf("%x %x", bm, bs))
	}
	if a, b := x.a.unread(), x.b.unread(); a != b {
		x.differ("FIONREAD", fmt.Sprint(a), fmt.Sprint(b))
	}
}

func newBoth(t *testing.T) *both {
	return &both{t: t, b: newHost(t), a: newOurs(t)}
}

func TestStartingModes(t *testing.T) {
	x := newBoth(t)
	if a, b := x.a.get(), x.b.get(); a != b {
		t.Errorf("ours %+v\nhost's %+v", a, b)
	}
}

func TestLineEditingLikeHost(t *testing.T) {
	x := newBoth(t)
	defer func() {
		if x.stop {
			t.Error(x.report)
		}
	}()
	k := x.b.get()
	for _, s := range []string{
		"hello\n", "abc\x7f\x7fXY\n", "one two  three\x17\x17Z\n", "kill me\x15done\n", "a\tb\x7f\x7f\x7fc\n",
		"ctrl\x01\x02\x7f\x7f\x7fx\n", "lit\x16\x03\x16\n\x16\x7fq\n", "re\x12print\n", "part\x04ial\x04", "\x04", "x\x04\x04",
		"int\x03rest\n", "quit\x1ckept\n", "stop\x1agone\n", "cr\rlf\n", "\x13held\x11free\n", strings.Repeat("long ", 900) + "\n", "\x7f\x7f\n",
	} {
		x.typeIn(s)
		x.state()
		x.shown()
		for range 4 {
			x.read(1000)
		}
		x.read(5000)
		x.shown()
	}
	for _, n := range []int{1, 2, 3, 4} {
		x.typeIn("abc\x04def\n\x04")
		for range 8 {
			x.read(n)
			x.state()
		}
	}
	k.Iflag |= linux.IUTF8
	x.set(linux.TCSETS, k)
	x.typeIn("grün €uro\x7f\x7f\x7f\x7f\x7f\x7f\x7fx\n\xc3\xa4\x7fy\x80\x7fz\n")
	x.shown()
	x.read(100)
	x.read(100)
}

// Random keys, modes and calls: every echo and every read must be the host's.
func TestRandomLikeHost(t *testing.T) {
	seed := time.Now().UnixNano()
	if s := os.Getenv("TTY_SEED"); s != "" {
		fmt.Sscan(s, &seed)
	}
	length := 1500 * time.Millisecond
	if d, err := time.ParseDuration(os.Getenv("TTY_TIME")); err == nil {
		length = d // a longer search
	}
	end := time.Now().Add(length)
	for round := int64(0); time.Now().Before(end); round++ {
		// The host works asynchronously and now and then answers late: only
		// what differs every time, with more and more patience, differs.
		var last *both
		for try := 0; try < 5; try++ {
			last = newBoth(t)
			last.b.pause <<= 2 * try
			last.random(rand.New(rand.NewSource(seed + round)))
			last.a.m.Put()
			last.a.s.Put()
			syscall.Close(last.b.s)
			syscall.Close(last.b.m)
			last.b.s, last.b.m = -1, -1
			if !last.stop {
				break
			}
		}
		if last.stop {
			t.Fatalf("%s\nTTY_SEED=%d", last.report, seed+round)
		}
	}
}

const keys = "abc XY_9\t\n\n\r\x03\x04\x7f\x7f\x15\x17\x16\x12\x1a\x1c\x00\xff\xc3\xa4\xe2\x82\xac\x01\x08\x1b"

func (x *both) random(rnd *rand.Rand) {
	k := x.b.get()
	text := func(n int) string {
		b := make([]byte, n)
		for i := range b {
			b[i] = keys[rnd.Intn(len(keys))]
		}
		return string(b)
	}
	flags := func(f *uint32, bits ...uint32) {
		for _, b := range bits {
			if rnd.Intn(4) == 0 {
				*f ^= b
			}
		}
	}
	for step := 0; step < 60 && !x.stop; step++ {
		switch rnd.Intn(12) {
		case 0, 1, 2, 3:
			// What the host has not moved to the master yet, a signal or a flush
			// would lose: take it first.
			x.shown()
			x.typeIn(text(1 + rnd.Intn(12)))
		case 4, 5:
			x.read(1 + rnd.Intn(20))
		case 6:
			x.write(text(1 + rnd.Intn(20)))
		case 7, 8:
			x.shown()
		case 9:
			x.state()
		case 10:
			flags(&k.Iflag, linux.ICRNL, linux.INLCR, linux.IGNCR, linux.ISTRIP, linux.IUTF8, linux.IUCLC, linux.PARMRK)
			flags(&k.Oflag, linux.OPOST, linux.ONLCR, linux.OCRNL, linux.ONOCR, linux.ONLRET, linux.OLCUC, linux.XTABS)
			flags(&k.Lflag, linux.ICANON, linux.ISIG, linux.ECHO, linux.ECHOE, linux.ECHOK, linux.ECHONL, linux.NOFLSH, linux.ECHOCTL, linux.ECHOPRT, linux.ECHOKE, linux.IEXTEN)
			k.Cc[linux.VMIN] = uint8(rnd.Intn(3))
			k.Cc[linux.VEOL] = []byte{0, 'X', '\r', 0xff}[rnd.Intn(4)]
			k.Cc[linux.VEOL2] = []byte{0, 'Y'}[rnd.Intn(2)]
			if k.Lflag&linux.ICANON == 0 && k.Cc[linux.VMIN] == 0 && rnd.Intn(2) == 0 {
				k.Cc[linux.VMIN] = 1
			}
			x.set([]uint32{linux.TCSETS2, linux.TCSETSW2, linux.TCSETSF2}[rnd.Intn(3)], k)
		default:
			x.shown()
			which := uint64(rnd.Intn(3))
			x.logf("flush %d", which)
			if a, b := x.a.ctl(linux.TCFLSH, which), x.b.ctl(linux.TCFLSH, which); a != b {
				x.differ("TCFLSH", a, b)
			}
			x.b.settle()
		}
	}
	if !x.stop {
		x.shown()
		x.read(5000)
	}
}
