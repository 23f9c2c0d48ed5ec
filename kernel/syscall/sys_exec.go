package syscall

//oops:stop half of the old program and half of the new

import (
	"strconv"
	"sync"

	"hardtack/abi/linux"
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

// bigArgs is held by an exec whose arguments are long: at most one of them
// keeps megabytes of kernel memory.
var bigArgs sync.Mutex

const bigArgsFrom = 256 << 10

// argReader reads argument vectors and counts what they take.
type argReader struct {
	t    *proc.Thread
	left uint64
	used uint64
	big  bool
}

func (r *argReader) done() {
	if r.big {
		bigArgs.Unlock()
	}
}

// vector reads a NULL-terminated array of strings; none at address 0.
func (r *argReader) vector(addr uio.Addr) ([]string, linux.Errno) {
	if addr == 0 {
		return nil, 0
	}
	var out []string
	for {
		p, e := readWord(r.t, addr)
		if e != 0 {
			return nil, e
		}
		if p == 0 {
			return out, 0
		}
		s, e := r.t.Space.ReadString(uio.Addr(p), maxArgString)
		if e == linux.ENAMETOOLONG {
			return nil, linux.E2BIG
		}
		if e != 0 {
			return nil, e
		}
		n := uint64(len(s)) + 1 + 8
		if n > r.left {
			return nil, linux.E2BIG
		}
		r.left -= n
		if r.used += n; r.used > bigArgsFrom && !r.big {
			bigArgs.Lock()
			r.big = true
		}
		out = append(out, s)
		addr += 8
	}
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
	r := argReader{t: t, left: limit}
	defer r.done()
	var e linux.Errno
	if x.Argv, e = r.vector(argv); e != 0 {
		return 0, e
	}
	if x.Env, e = r.vector(envp); e != 0 {
		return 0, e
	}
	return 0, t.Exec(x)
}
