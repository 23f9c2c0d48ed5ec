package procfs

import (
	"math"
	"slices"
	"strings"
	"sync/atomic"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/creds"
	"hardtack/kernel/base/sysctl"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/base/wait"
	"hardtack/kernel/fs/vfs"
)

// sysDir is /proc/sys and its directories; about.dir says which. (Its functions refer
// to it.)
var sysDir = &entry{name: "sys", mode: 0o555, strict: true, links: func(*about) uint32 { return 1 }}

func (x *about) ctlDir() *sysctl.Dir {
	if x.dir != nil {
		return x.dir
	}
	return sysctl.Root()
}

func ctlEntry(d *sysctl.Dir, name string) (*entry, *about) {
	f, sub := d.Find(name)
	switch {
	case f != nil:
		mode := f.Mode
		if f.Shown != 0 {
			mode = f.Shown
		}
		return &entry{name: name, mode: mode, ctl: f, strict: true}, &about{}
	case sub != nil:
		return sysDir, &about{dir: sub}
	}
	return nil, nil
}

func findCtl(x *about, name string) (*entry, *about) { return ctlEntry(x.ctlDir(), name) }

func listCtl(x *about, emit func(string, *entry, *about) bool) {
	d := x.ctlDir()
	for _, name := range d.Names() {
		if e, y := ctlEntry(d, name); e != nil && !emit(name, e, y) {
			return
		}
	}
}

// ctlAllows is the check at the opening and at each read and write of a file of
// /proc/sys: a descriptor that root opened gives nobody else its rights. Capabilities
// do not count, but for CAP_NET_ADMIN under net.
func ctlAllows(c *caller.Ctx, f *sysctl.File, want vfs.Access) bool {
	bits := f.Mode
	switch cred := c.Cred(); {
	case cred.EUID == 0, strings.HasPrefix(f.Name, "net/") && cred.Has(creds.CapNetAdmin):
		bits >>= 6
	case cred.EGID == 0 || slices.Contains(cred.Groups, 0):
		bits >>= 3
	}
	return uint32(want)&^bits == 0
}

// ctlText is an open file of /proc/sys.
type ctlText struct {
	vfs.BaseOps
	f    *sysctl.File // immutable
	poll *ctlPoll     // nil: it always reads the same as to poll
}

func (n *node) openCtl(c *caller.Ctx, flags uint32) (vfs.Ops, linux.Errno) {
	f := n.e.ctl
	want := vfs.MayRead
	switch flags & linux.O_ACCMODE {
	case linux.O_WRONLY:
		want = vfs.MayWrite
	case linux.O_RDWR:
		want |= vfs.MayWrite
	}
	if !ctlAllows(c, f, want) {
		return nil, linux.EACCES
	}
	t := &ctlText{f: f}
	if p, ok := f.Value.(sysctl.Polled); ok {
		t.poll = newCtlPoll(p)
	}
	return t, 0
}

// Read gives what the value's rule gives.
func (t *ctlText) Read(c *caller.Ctx, _ *vfs.File, v *uio.Vec, off int64) (int, linux.Errno) {
	if !ctlAllows(c, t.f, vfs.MayRead) {
		return 0, linux.EPERM
	}
	b, e := t.f.Value.Read(c, v.Len(), off)
	if e != 0 {
		return 0, e
	}
	n, e := v.CopyOut(b)
	if n < len(b) {
		return 0, e
	}
	return n, 0
}

// maxCtlWrite is more than any value takes; Linux bounds it by what it can allocate.
const maxCtlWrite = 64 << 10

// Write hands a whole write to the value.
func (t *ctlText) Write(c *caller.Ctx, _ *vfs.File, v *uio.Vec, off int64) (int, linux.Errno) {
	if !ctlAllows(c, t.f, vfs.MayWrite) {
		return 0, linux.EPERM
	}
	b := make([]byte, min(v.Len(), maxCtlWrite))
	if _, e := v.CopyIn(b); e != 0 {
		return 0, e
	}
	return t.f.Value.Write(c, b, off)
}

// Seek moves as default_llseek does: any position is good, and a hole is found at the end,
// which is 0, from each one before it.
func (t *ctlText) Seek(_ *caller.Ctx, f *vfs.File, off int64, whence int) (int64, linux.Errno) {
	switch {
	case whence == linux.SEEK_HOLE && off < 0:
		f.Pos = 0
		return 0, 0
	case whence == linux.SEEK_DATA && off < 0:
		return 0, linux.EINVAL
	}
	return vfs.SeekSized(f, off, whence, 0, math.MaxInt64)
}

// ctlPoll tells of changes of a value since the last poll.
type ctlPoll struct {
	sysctl.Polled
	seen atomic.Uint64
}

func newCtlPoll(p sysctl.Polled) *ctlPoll {
	x := &ctlPoll{Polled: p}
	x.seen.Store(p.Changes())
	return x
}

// Ready says POLLERR and POLLPRI once after each change.
func (t *ctlText) Ready(*vfs.File) wait.Events {
	if p := t.poll; p != nil {
		if n := p.Changes(); p.seen.Swap(n) != n {
			return wait.In | wait.RdNorm | wait.Err | wait.Pri
		}
	}
	return wait.In | wait.Out | wait.RdNorm | wait.WrNorm
}

// Queue is where changes are announced.
func (t *ctlText) Queue(*vfs.File) *wait.Queue {
	if t.poll != nil {
		return t.poll.Queue()
	}
	return &never
}
