package tty

import (
	"sync"

	"hardtack/abi/linux"
	"hardtack/kernel/base/accounts"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/ledger"
	"hardtack/kernel/base/mem"
	"hardtack/kernel/base/settings"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/base/wait"
	"hardtack/kernel/fs/devfs"
	"hardtack/kernel/fs/vfs"
)

// maxPairs bounds pseudo-terminals (kernel.pty.max). Those that are open may
// take a 32nd of memory: pairCost is the input ring, the backlog, output and
// echoes, and slack.
const (
	maxPairs = 4096
	pairCost = bufSize + backlogSize + outputSize + echoSize + 4096
)

// pair is a pseudo-terminal: its slave is a TTY, and the open /dev/ptmx is the
// driver of it.
type pair struct {
	slave TTY
	n     uint32         // the number in /dev/pts; immutable
	user  *accounts.User // who is charged; immutable
	queue wait.Queue     // of the master

	// All guarded by slave.mu.
	locked  bool  // until TIOCSPTLCK 0
	seen    bool  // the slave was opened: with nobody left it is a hang-up
	packets bool  // TIOCPKT
	status  uint8 // TIOCPKT_* that the master has not read
}

var (
	pairsMu sync.Mutex
	pairs   [maxPairs]*pair // guarded by pairsMu
)

// OpenSlave opens a terminal of /dev/pts.
func OpenSlave(c *caller.Ctx, i *vfs.Inode, flags uint32) (vfs.Ops, linux.Errno) {
	return openSlave(c, linux.Minor(i.Rdev), flags)
}

// OpenMaster opens /dev/ptmx: a new pair.
func OpenMaster(c *caller.Ctx, _ uint32) (vfs.Ops, linux.Errno) {
	p, e := newPair(c.User())
	if e != 0 {
		return nil, e
	}
	if e := devfs.AddPTS(c, p.n); e != 0 {
		p.forget()
		return nil, e
	}
	return &master{p}, 0
}

// pairPool is the pairs that there may be, which users share.
var pairPool = sync.OnceValue(func() *accounts.Pool {
	return accounts.NewPool(int64(min(maxPairs, mem.Total()*mem.PageSize/32/pairCost)))
})

// Minors is how many numbers pseudo-terminals have.
func Minors() int { return maxPairs }

// Open returns how many pseudo-terminals there are.
func Open() (n int64) {
	pairsMu.Lock()
	defer pairsMu.Unlock()
	for _, p := range pairs {
		if p != nil {
			n++
		}
	}
	return n
}

// newPair makes a user's pair with the lowest free number.
func newPair(u *accounts.User) (*pair, linux.Errno) {
	if !pairPool().Charge(u, 1) {
		return nil, linux.ENOSPC
	}
	pairsMu.Lock()
	defer pairsMu.Unlock()
	for n := range int(min(maxPairs, settings.PtyMax.Get())) {
		if pairs[n] == nil {
			p := &pair{n: uint32(n), locked: true, user: u}
			p.slave = TTY{driver: p, major: linux.UNIX98_PTY_SLAVE, minor: p.n, pty: true, term: defaultTermios()}
			p.slave.term.Lflag = linux.ISIG | linux.ICANON | linux.ECHO | linux.ECHOE | linux.ECHOK | linux.ECHOCTL | linux.ECHOKE | linux.IEXTEN
			p.slave.term.Cflag = linux.B38400 | linux.CS8 | linux.CREAD
			pairs[n] = p
			return p, 0
		}
	}
	pairPool().Release(u, 1)
	return nil, linux.ENOSPC
}

// forget frees the number.
func (p *pair) forget() {
	pairsMu.Lock()
	if pairs[p.n] == p {
		pairs[p.n] = nil
		pairPool().Release(p.user, 1)
	}
	pairsMu.Unlock()
}

func openSlave(c *caller.Ctx, n, flags uint32) (vfs.Ops, linux.Errno) {
	var p *pair
	if n < maxPairs {
		pairsMu.Lock()
		p = pairs[n]
		pairsMu.Unlock()
	}
	if p == nil {
		return nil, linux.EIO
	}
	p.slave.mu.Lock()
	locked := p.locked
	p.slave.mu.Unlock()
	if locked {
		return nil, linux.EIO
	}
	x, e := p.slave.open(c, flags, true)
	if e != 0 {
		return nil, e
	}
	p.slave.mu.Lock()
	p.seen = true
	p.slave.mu.Unlock()
	return x, 0
}

// kick tells the master that something changed.
func (p *pair) kick(t *TTY) {
	p.queue.Notify(readable | writable | wait.Hup)
	t.mu.Lock()
	gone := t.noPeer && t.opens == 0
	t.mu.Unlock()
	if gone {
		p.forget()
	}
}

// packet notes a change for TIOCPKT; called with slave.mu held.
func (p *pair) packet(t *TTY, status uint8) {
	if !p.packets {
		return
	}
	for _, opposite := range [][2]uint8{{linux.TIOCPKT_STOP, linux.TIOCPKT_START}, {linux.TIOCPKT_DOSTOP, linux.TIOCPKT_NOSTOP}} {
		if status&opposite[0] != 0 {
			p.status &^= opposite[1]
		}
		if status&opposite[1] != 0 {
			p.status &^= opposite[0]
		}
	}
	p.status |= status
	t.after.kick = true
}

// drained is always true: what the master has not read counts as sent.
func (p *pair) drained(*TTY) bool { return true }

// hungUp reports that the slave was open and is not any more; called with slave.mu held.
func (p *pair) hungUp() bool { return p.seen && p.slave.opens == 0 }

// master is an open /dev/ptmx.
type master struct{ p *pair }

// Holds adds the pair.
func (m *master) Holds(s *ledger.Sum) {
	t := &m.p.slave
	t.mu.Lock()
	n := ledger.Of[master]() + ledger.Of[pair]() + ledger.Size(int64(cap(t.in.backlog))) + ledger.Size(int64(cap(t.out.buf))) +
		ledger.Size(int64(cap(t.out.echo)))
	t.mu.Unlock()
	s.Add(ledger.Files, n)
}

// sleep waits for a change, giving the slave's mu up meanwhile.
func (m *master) sleep(c *caller.Ctx, ev wait.Events) (interrupted bool) {
	p, t := m.p, &m.p.slave
	c.Arm()
	p.queue.Add(&c.Entry, &c.Sleeper, ev)
	t.unlock()
	r := c.Sleep(wait.NoDeadline)
	p.queue.Remove(&c.Entry)
	t.mu.Lock()
	return r == wait.Interrupted
}

// Read takes the slave's output; in packet mode a status byte comes first.
func (m *master) Read(c *caller.Ctx, f *vfs.File, v *uio.Vec, _ int64) (n int, e linux.Errno) {
	if v.Len() == 0 {
		return 0, 0
	}
	p, t := m.p, &m.p.slave
	t.mu.Lock()
	for interrupted := false; t.out.len() == 0 && p.status == 0; {
		switch {
		case p.hungUp():
			e = linux.EIO
		case f.NonBlock():
			e = linux.EAGAIN
		case interrupted:
			e = linux.ERESTARTSYS
		}
		if e != 0 {
			t.unlock()
			return 0, e
		}
		interrupted = m.sleep(c, readable)
	}
	if p.packets {
		c.Scratch[0] = p.status // TIOCPKT_DATA is 0
		status := p.status
		p.status = 0
		n, e = t.copyOut(v, c.Scratch[:1])
		if e != 0 || status != 0 {
			t.unlock()
			return n, e
		}
	}
	b := c.Scratch[:]
	if min(v.Len(), t.out.len()) > len(b) {
		chunk := chunks.Get().(*[4096]byte)
		defer chunks.Put(chunk)
		b = chunk[:]
	}
	for v.Len() > 0 && e == 0 {
		k := t.out.take(b[:min(v.Len(), len(b))])
		if k == 0 {
			break
		}
		k, e = t.copyOut(v, b[:k])
		n += k
	}
	t.releaseEcho()
	t.after.events |= writable
	t.unlock()
	if n > 0 {
		e = 0
	}
	return n, e
}

// Write is what the terminal's user types.
func (m *master) Write(c *caller.Ctx, f *vfs.File, v *uio.Vec, _ int64) (done int, e linux.Errno) {
	t := &m.p.slave
	for v.Len() > 0 {
		k, err := v.CopyIn(c.Scratch[:min(v.Len(), len(c.Scratch))])
		for b := c.Scratch[:k]; len(b) > 0; {
			n := t.Receive(b)
			done += n
			if b = b[n:]; len(b) == 0 {
				break
			}
			if e = m.wait(c, f); e != 0 {
				break
			}
		}
		if e == 0 {
			e = err
		}
		if e != 0 {
			break
		}
	}
	if done > 0 {
		e = 0
	}
	return done, e
}

// wait blocks until the slave takes input again.
func (m *master) wait(c *caller.Ctx, f *vfs.File) linux.Errno {
	t := &m.p.slave
	t.mu.Lock()
	defer t.unlock()
	for interrupted := false; len(t.in.backlog) >= backlogSize; {
		if f.NonBlock() {
			return linux.EAGAIN
		}
		if interrupted {
			return linux.ERESTARTSYS
		}
		interrupted = m.sleep(c, writable)
	}
	return 0
}

// Ready is what poll reports.
func (m *master) Ready(*vfs.File) (ev wait.Events) {
	p, t := m.p, &m.p.slave
	t.mu.Lock()
	if t.out.len() > 0 {
		ev |= readable
	}
	if p.status != 0 {
		ev |= readable | wait.Pri
	}
	if p.hungUp() {
		ev |= wait.Hup
	}
	if len(t.in.backlog) < backlogSize {
		ev |= writable
	}
	t.mu.Unlock()
	return ev
}

// Queue is where readiness is announced.
func (m *master) Queue(*vfs.File) *wait.Queue { return &m.p.queue }

// Ioctl answers for the pair, and for the slave what concerns modes.
func (m *master) Ioctl(c *caller.Ctx, f *vfs.File, cmd uint32, arg uint64) (uint64, linux.Errno) {
	p, t := m.p, &m.p.slave
	switch cmd {
	case linux.TIOCGPTN:
		return 0, writeU32(c, arg, p.n)
	case linux.TIOCSPTLCK, linux.TIOCPKT:
		v, e := readU32(c, arg)
		if e != 0 {
			return 0, e
		}
		t.mu.Lock()
		if cmd == linux.TIOCSPTLCK {
			p.locked = v != 0
		} else {
			if v != 0 && !p.packets {
				p.status = 0
			}
			p.packets = v != 0
		}
		t.mu.Unlock()
		return 0, 0
	case linux.TIOCGPTLCK, linux.TIOCGPKT:
		t.mu.Lock()
		on := p.locked
		if cmd == linux.TIOCGPKT {
			on = p.packets
		}
		t.mu.Unlock()
		return 0, writeU32(c, arg, bit(on))
	case linux.TIOCSIG:
		sig := linux.Signal(arg)
		if sig != linux.SIGINT && sig != linux.SIGQUIT && sig != linux.SIGTSTP {
			return 0, linux.EINVAL
		}
		t.mu.Lock()
		t.after.signals |= sig.Set()
		t.unlock()
		return 0, 0
	case linux.TIOCGPTPEER:
		return m.openPeer(c, f, uint32(arg))
	case linux.FIONREAD:
		t.mu.Lock()
		n := t.out.len()
		t.mu.Unlock()
		return 0, writeU32(c, arg, uint32(n))
	case linux.TIOCOUTQ:
		return 0, writeU32(c, arg, 0)
	case linux.TCFLSH:
		if arg > linux.TCIOFLUSH {
			return 0, linux.EINVAL
		}
		t.mu.Lock()
		if arg != linux.TCOFLUSH {
			t.out.clear()
			t.after.events |= writable
		}
		if arg != linux.TCIFLUSH {
			t.in.backlog = t.in.backlog[:0]
			t.after.kick = true
		}
		t.unlock()
		return 0, 0
	}
	return t.ioctl(c, f, cmd, arg, true)
}

// openPeer is TIOCGPTPEER: a descriptor of the slave for whoever has the master, however
// the caller sees /dev/pts.
func (m *master) openPeer(c *caller.Ctx, f *vfs.File, flags uint32) (uint64, linux.Errno) {
	at := devfs.PTSPath(f.Path, m.p.n)
	if at.Zero() {
		return 0, linux.ENODEV
	}
	peer, e := vfs.OpenGranted(c, at, flags)
	if e != 0 {
		return 0, e
	}
	fd, e := jobs.Install(c, peer, flags&linux.O_CLOEXEC != 0)
	if e != 0 {
		peer.Put()
		return 0, e
	}
	return uint64(fd), 0
}

// Release closes the master: the slave hangs up and its name goes.
func (m *master) Release(*vfs.File) {
	devfs.RemovePTS(m.p.n)
	t := &m.p.slave
	t.mu.Lock()
	t.noPeer = true
	t.mu.Unlock()
	t.Hangup()
}
