package syscall

//oops:stop half of the old program and half of the new

import (
	"strconv"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/fs/vfs"
	"hardtack/kernel/process/proc"
	"hardtack/kernel/process/program"
)

var execCalls = []Call{
	{linux.SYS_execve, "execve", sysExecve, "works except core dumps, which are not written"},
	{linux.SYS_execveat, "execveat", sysExecveat, "works"},
}

// maxArgString is MAX_ARG_STRLEN: the longest single argument.
const maxArgString = 32 * 4096

// heapArgs is how many bytes of arguments an exec keeps in the kernel's heap, besides the
// first one. The others wait in pages.
const heapArgs = 32 << 10

// argHeader is what a string takes in the heap besides its bytes, about.
const argHeader = 24

// argReader reads argument vectors and counts what they take.
type argReader struct {
	t    *proc.Thread
	left uint64            // bytes with pointers
	heap int               // bytes in the heap
	long *program.ArgPages // nil until the heap is used up
	pace caller.Pace
}

func (r *argReader) done() {
	if r.long != nil {
		r.long.Free()
	}
}

// vector reads a NULL-terminated array of strings; none at address 0. It returns those
// that are in the heap.
func (r *argReader) vector(addr uio.Addr, env bool) ([]string, linux.Errno) {
	if addr == 0 {
		return nil, 0
	}
	var out []string
	for first := !env; ; first = false {
		p, e := readWord(r.t, addr)
		if e != 0 {
			return nil, e
		}
		if p == 0 {
			return out, 0
		}
		n := 0
		if r.long == nil {
			var s string
			if s, e = r.short(uio.Addr(p), first); e == 0 {
				out = append(out, s)
				n = len(s) + 1
			}
		}
		if r.long != nil {
			n, e = r.page(uio.Addr(p), env)
		}
		if e != 0 {
			return nil, e
		}
		if uint64(n)+8 > r.left {
			return nil, linux.E2BIG
		}
		r.left -= uint64(n) + 8
		addr += 8
	}
}

// short reads a string into the heap. If that is used up it makes r.long.
func (r *argReader) short(p uio.Addr, first bool) (string, linux.Errno) {
	most := maxArgString
	if !first {
		most = min(most, r.heap)
	}
	s, e := r.t.Space.ReadString(p, most)
	switch {
	case e == linux.ENAMETOOLONG && most < maxArgString:
		r.long = program.NewArgPages(&r.t.Proc.ExecPages)
	case e == linux.ENAMETOOLONG:
		return "", linux.E2BIG
	case e == 0 && !first:
		r.heap = max(r.heap-len(s)-argHeader, 0)
	}
	return s, e
}

// page reads a string into pages.
func (r *argReader) page(p uio.Addr, env bool) (int, linux.Errno) {
	if r.t.Killed() {
		return 0, linux.EINTR
	}
	if r.pace.Due() {
		r.pace.Rest(&r.t.Ctx)
	}
	return r.long.Add(r.t.Space, p, int(min(maxArgString, r.left)), env)
}

// readWord reads a pointer, aligned or not.
func readWord(t *proc.Thread, addr uio.Addr) (uint64, linux.Errno) {
	if addr&7 == 0 {
		return t.Space.LoadU64(addr)
	}
	b, e := readUser(t, addr, 8)
	if e != 0 {
		return 0, e
	}
	return le64(b), 0
}

// sysExecve is execve(const char *path, char *const argv[], char *const envp[]).
func sysExecve(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	path, e := readPath(t, a.Addr(0))
	if e != 0 {
		return 0, e
	}
	return exec(t, &program.Args{Path: path, Walk: vfs.FollowLast}, a.Addr(1), a.Addr(2))
}

// sysExecveat is execveat(int dirfd, path, argv, envp, int flags).
func sysExecveat(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	walk := vfs.FollowLast
	flags := a.Uint(4)
	if flags&linux.AT_SYMLINK_NOFOLLOW != 0 {
		walk = 0
	}
	if flags&linux.AT_EMPTY_PATH != 0 {
		walk |= vfs.EmptyPath
	}
	path, e := readPath(t, a.Addr(1))
	switch {
	case e != 0:
		return 0, e
	case path == "" && flags&linux.AT_EMPTY_PATH == 0:
		return 0, linux.ENOENT
	case flags&^(linux.AT_EMPTY_PATH|linux.AT_SYMLINK_NOFOLLOW) != 0:
		return 0, linux.EINVAL
	}
	fd := a.Int(0)
	at, e := dirAt(t, fd, path)
	if e != 0 {
		return 0, e
	}
	if at != nil {
		defer at.Put()
	}
	x := program.Args{At: at, Path: path, Walk: walk}
	if at != nil {
		x.Name = "/dev/fd/" + strconv.Itoa(int(fd))
		if path != "" {
			x.Name += "/" + path
		}
		x.Closes, _ = t.FDs.CloseOnExec(fd)
	}
	return exec(t, &x, a.Addr(2), a.Addr(3))
}

func exec(t *proc.Thread, x *program.Args, argv, envp uio.Addr) (uint64, linux.Errno) {
	limit := t.Proc.ArgLimit()
	if n := uint64(len(x.Path)) + 1; n < limit {
		limit -= n
	}
	r := argReader{t: t, left: limit, heap: heapArgs}
	defer r.done()
	var e linux.Errno
	if x.Argv, e = r.vector(argv, false); e != 0 {
		return 0, e
	}
	if x.Env, e = r.vector(envp, true); e != 0 {
		return 0, e
	}
	x.Long = r.long
	return 0, t.Exec(x)
}
