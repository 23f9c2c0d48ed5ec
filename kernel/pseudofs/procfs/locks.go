package procfs

import (
	"fmt"
	"math"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/fs/vfs"
	"hardtack/kernel/process/proc"
)

// locks is /proc/locks. Whoever has a lock has the file open, so that a walk over the
// open files finds them all.
func locks() string {
	c := caller.NewKernelCtx()
	seen := map[*vfs.Inode]bool{}
	held := map[*vfs.File]int32{} // who has the open file
	var order []*vfs.Inode
	proc.Each(func(p *proc.Process) bool {
		eachFile(p, c, func(f *vfs.File) {
			if held[f] == 0 {
				held[f] = p.PID
			}
			if i := f.Path.Inode(); !seen[i] {
				seen[i] = true
				order = append(order, i)
			}
		})
		return true
	})
	var b []byte
	n := 0
	for _, i := range order {
		i.EachLock(func(l vfs.RecordLock, of *vfs.File) {
			n++
			b = appendLock(b, n, i, &l, of, held)
		})
	}
	return string(b)
}

// eachFile calls fn for each open file of a process that has a name.
func eachFile(p *proc.Process, c *caller.Ctx, fn func(*vfs.File)) {
	var list [listBatch]int32
	for first := int32(0); first >= 0; {
		n, _ := p.InspectFDs(nil, c, proc.FSCreds, first, list[:])
		for _, fd := range list[:n] {
			if f, _, _ := p.InspectFile(nil, c, proc.FSCreds, fd); f != nil {
				if !f.Path.Zero() {
					fn(f)
				}
				f.Put()
			}
		}
		if n == 0 {
			return
		}
		first = list[n-1] + 1
	}
}

func appendLock(b []byte, n int, i *vfs.Inode, l *vfs.RecordLock, of *vfs.File, held map[*vfs.File]int32) []byte {
	kind, how, pid := "POSIX ", "ADVISORY", l.PID
	switch {
	case l.Lease != vfs.NoLease:
		kind, how, pid = "LEASE ", "ACTIVE  ", held[of]
		if l.Lease == vfs.LeaseBreaking {
			how = "BREAKING"
		}
	case of != nil:
		kind, pid = "FLOCK ", held[of]
	case l.PID == -1:
		kind = "OFDLCK"
	}
	typ := "READ"
	switch l.Type {
	case linux.F_WRLCK:
		typ = "WRITE"
	case linux.F_UNLCK:
		typ = "UNLCK"
	}
	b = fmt.Appendf(b, "%d: %s %s  %s %d %02x:%02x:%d %d ", n, kind, how, typ, pid, linux.Major(i.FS.Dev), linux.Minor(i.FS.Dev), i.Ino, l.Start)
	if of != nil || l.End == math.MaxInt64 {
		return append(b, "EOF\n"...)
	}
	return fmt.Appendf(b, "%d\n", l.End)
}
