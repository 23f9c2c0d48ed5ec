// Package nsfs has the files of namespaces (/proc/PID/ns/*). All processes are in the one
// namespace of each kind, which has the number of Linux's initial namespace.
package nsfs

import (
	"fmt"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/hook"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/fs/vfs"
)

// Namespace is a namespace; immutable.
type Namespace struct {
	vfs.BaseNode
	vfs.Inode
	Kind uint32 // CLONE_NEW*
	name string
	path vfs.Path
}

var fs = vfs.NewFileSystem("nsfs", linux.NSFS_MAGIC, vfs.FSInTree)

func namespace(name string, kind uint32, ino uint64) *Namespace {
	n := &Namespace{Kind: kind, name: name}
	n.Init(fs, n, &vfs.NewNode{Mode: linux.S_IFREG | 0o444})
	n.Ino = ino
	n.AdoptAttrs(vfs.Immutable)
	n.path = vfs.Path{Dentry: vfs.NewRoot(&n.Inode)}
	return n
}

// The namespaces. Those of mounts and of the network have the numbers that Linux 6.1
// comes to as it starts.
var (
	Time   = namespace("time", linux.CLONE_NEWTIME, 0xEFFFFFFA)
	Cgroup = namespace("cgroup", linux.CLONE_NEWCGROUP, 0xEFFFFFFB)
	PID    = namespace("pid", linux.CLONE_NEWPID, 0xEFFFFFFC)
	User   = namespace("user", linux.CLONE_NEWUSER, 0xEFFFFFFD)
	UTS    = namespace("uts", linux.CLONE_NEWUTS, 0xEFFFFFFE)
	IPC    = namespace("ipc", linux.CLONE_NEWIPC, 0xEFFFFFFF)
	Net    = namespace("net", linux.CLONE_NEWNET, 0xF0000000)
	Mount  = namespace("mnt", linux.CLONE_NEWNS, 0xF0000001)
)

// String is the text of the links that lead there.
func (n *Namespace) String() string { return fmt.Sprintf("%s:[%d]", n.name, n.Ino) }

// Path is where such a link leads.
func (n *Namespace) Path() vfs.Path { return n.path }

// Open opens it.
func (n *Namespace) Open(*caller.Ctx, vfs.Path, uint32) (vfs.Ops, linux.Errno) {
	return &file{n: n}, 0
}

// file is an open namespace.
type file struct {
	vfs.BaseOps
	n *Namespace
}

// Of returns the namespace that an open file is, nil for other files.
func Of(f *vfs.File) *Namespace {
	if x, ok := f.Ops.(*file); ok {
		return x.n
	}
	return nil
}

// Name is what /proc/PID/fd shows.
func (x *file) Name(*vfs.File) string { return x.n.String() }

// Install gives the caller a descriptor for a file.
var Install = hook.Default(func(*caller.Ctx, *vfs.File) (int32, linux.Errno) { return -1, linux.EBADF })

// Ioctl tells of the namespace.
func (x *file) Ioctl(c *caller.Ctx, _ *vfs.File, cmd uint32, arg uint64) (uint64, linux.Errno) {
	switch n := x.n; cmd {
	case linux.NS_GET_USERNS:
		if n == User { // nobody above owns it
			return 0, linux.EPERM
		}
		f, e := vfs.OpenGranted(c, User.path, linux.O_RDONLY)
		if e != 0 {
			return 0, e
		}
		fd, e := Install.Call(c, f)
		if e != 0 {
			f.Put()
		}
		return uint64(fd), e
	case linux.NS_GET_PARENT:
		if n == User || n == PID {
			return 0, linux.EPERM
		}
		return 0, linux.EINVAL
	case linux.NS_GET_NSTYPE:
		return uint64(n.Kind), 0
	case linux.NS_GET_OWNER_UID:
		if n != User {
			return 0, linux.EINVAL
		}
		_, e := c.Mem.CopyOut(uio.Addr(arg), make([]byte, 4)) // root
		return 0, e
	}
	return 0, linux.ENOTTY
}
