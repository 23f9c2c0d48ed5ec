package tty

import (
	"math/rand"
	"testing"

	"hardtack/abi/linux"
	"hardtack/kernel/base/uio"
)

// guarded is user memory of which only the first bytes are there.
type guarded struct{ flat }

func (g guarded) CopyIn(d []byte, a uio.Addr) (int, linux.Errno) {
	if uint64(a)+uint64(len(d)) > uint64(len(g.flat)) || a > 1<<40 {
		return 0, linux.EFAULT
	}
	return g.flat.CopyIn(d, a)
}

func (g guarded) CopyOut(a uio.Addr, s []byte) (int, linux.Errno) {
	if uint64(a)+uint64(len(s)) > uint64(len(g.flat)) || a > 1<<40 {
		return 0, linux.EFAULT
	}
	return g.flat.CopyOut(a, s)
}

// Random ioctls with random arguments between random keys and reads: nothing
// panics, and the input ring stays in order.
func TestWildCalls(t *testing.T) {
	w := newWorld(t)
	rnd := rand.New(rand.NewSource(3))
	o := newOurs(t)
	o.c.Mem = guarded{o.mem}
	cmds := []uint32{linux.FIONREAD, linux.TIOCSTI, linux.TIOCGPTPEER, linux.TIOCSPTLCK, linux.TIOCPKT, linux.TIOCSIG, linux.TIOCGDEV, linux.TIOCVHANGUP}
	for c := uint32(linux.TCGETS); c <= linux.TIOCCBRK+2; c++ {
		cmds = append(cmds, c)
	}
	cmds = append(cmds, linux.TCGETS2, linux.TCSETS2, linux.TCSETSW2, linux.TCSETSF2)
	for step := 0; step < 60000; step++ {
		w.be(int32(10*(1+rnd.Intn(2))), int32(10+rnd.Intn(2)))
		w.ignores = rnd.Intn(2) == 0
		arg := []uint64{0, 1, 2, 3, uint64(rnd.Intn(300)), rnd.Uint64()}[rnd.Intn(6)]
		cmd := cmds[rnd.Intn(len(cmds))]
		switch rnd.Intn(6) {
		case 0:
			if cmd == linux.TCSBRK && o.slave().out.stopped {
				break
			}
			o.s.Ops.Ioctl(o.c, o.s, cmd, arg)
		case 1:
			o.m.Ops.Ioctl(o.c, o.m, cmd, arg)
		case 2:
			b := make([]byte, rnd.Intn(700))
			rnd.Read(b)
			o.typeIn(b)
		case 3:
			b := make([]byte, rnd.Intn(700))
			rnd.Read(b)
			o.write(b)
		case 4:
			rnd.Read(o.mem)
			if rnd.Intn(2) == 0 {
				o.read(rnd.Intn(5000))
			} else {
				o.shown(rnd.Intn(9000))
			}
		case 5:
			o.poll()
		}
		x := o.slave()
		x.mu.Lock()
		in := &x.in
		bad := in.tail > in.canon && x.canonical() || in.canon > in.head || in.head-in.tail > bufSize ||
			len(in.backlog) > backlogSize || x.out.len() > outputSize+echoSize+64 || len(x.out.echo) > echoSize+64
		x.mu.Unlock()
		if bad {
			t.Fatalf("step %d: head %d canon %d tail %d backlog %d out %d echo %d", step, in.head, in.canon, in.tail, len(in.backlog), x.out.len(), len(x.out.echo))
		}
		if o.s.Ops.(*file).dead() {
			ops, e := openSlave(o.c, o.m.Ops.(*master).p.n, linux.O_RDWR)
			if e == 0 {
				o.s.Ops.Release(o.s)
				o.s = newFile(ops)
			}
			o.mctl(linux.TIOCSPTLCK, 0)
		}
	}
}
