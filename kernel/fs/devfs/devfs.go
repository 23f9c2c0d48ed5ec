// Package devfs is /dev: a tmpfs (devtmpfs) filled with the standard nodes, the
// memory devices, and devpts.
//
// Terminals are registered by their own package; devfs only makes the nodes.
package devfs

import (
	"strconv"
	"sync"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/fs/tmpfs"
	"hardtack/kernel/fs/vfs"
)

// node is an entry of /dev.
type node struct {
	name         string
	mode         uint32
	gid          uint32
	major, minor uint32
	target       string // of a symbolic link
}

const (
	ttyGroup  = 5 // Debian's group tty
	ptsMajor  = 136
	ptsPerDev = 1 << 20
)

// nodes are there from the start.
var nodes = []node{
	{name: "null", mode: linux.S_IFCHR | 0o666, major: 1, minor: 3},
	{name: "zero", mode: linux.S_IFCHR | 0o666, major: 1, minor: 5},
	{name: "full", mode: linux.S_IFCHR | 0o666, major: 1, minor: 7},
	{name: "random", mode: linux.S_IFCHR | 0o666, major: 1, minor: 8},
	{name: "urandom", mode: linux.S_IFCHR | 0o666, major: 1, minor: 9},
	{name: "kmsg", mode: linux.S_IFCHR | 0o644, major: 1, minor: 11},
	{name: "tty", mode: linux.S_IFCHR | 0o666, gid: ttyGroup, major: 5, minor: 0},
	{name: "console", mode: linux.S_IFCHR | 0o600, gid: ttyGroup, major: 5, minor: 1},
	{name: "ptmx", mode: linux.S_IFCHR | 0o666, gid: ttyGroup, major: 5, minor: 2},
	{name: "fd", mode: linux.S_IFLNK | 0o777, target: "/proc/self/fd"},
	{name: "stdin", mode: linux.S_IFLNK | 0o777, target: "/proc/self/fd/0"},
	{name: "stdout", mode: linux.S_IFLNK | 0o777, target: "/proc/self/fd/1"},
	{name: "stderr", mode: linux.S_IFLNK | 0o777, target: "/proc/self/fd/2"},
	{name: "pts", mode: linux.S_IFDIR | 0o755},
	{name: "shm", mode: linux.S_IFDIR | 0o1777},
	{name: "kernel", mode: linux.S_IFDIR | 0o755},
}

// Type and PTSType are devtmpfs and devpts for mount(2).
var (
	Type    = vfs.FSType{Make: func(string) (*vfs.FileSystem, linux.Errno) { return Dev().FileSystem, 0 }}
	PTSType = vfs.FSType{Make: func(string) (*vfs.FileSystem, linux.Errno) { return pts().FileSystem, 0 }}
)

// Dev is the one devtmpfs: every mount of it shows the same tree.
var Dev = sync.OnceValue(func() *tmpfs.FS {
	fs := tmpfs.New(tmpfs.Options{Type: "devtmpfs", Mode: 0o755})
	fs.Destroy = nil // it stays
	for _, n := range nodes {
		i, e := fs.Make(&vfs.NewNode{Mode: n.mode, GID: n.gid, Rdev: linux.Makedev(n.major, n.minor), Target: n.target})
		if e == 0 {
			_, e = fs.Root.AddChild(n.name, i)
		}
		if e != 0 {
			panic("devfs: " + n.name + ": " + e.Error()) // only at boot, with memory to spare
		}
	}
	return fs
})

// diskGroup is Debian's group disk.
const diskGroup = 6

// AddDisk makes the node of a block device.
func AddDisk(name string, dev uint64) linux.Errno {
	i, e := Dev().Make(&vfs.NewNode{Mode: linux.S_IFBLK | 0o660, GID: diskGroup, Rdev: dev})
	if e == 0 {
		_, e = Dev().Root.AddChild(name, i)
	}
	return e
}

// AddChar makes the node of a character device that all may open.
func AddChar(name string, dev uint64) linux.Errno { return addChar(Dev().Root, name, dev) }

// AddService makes the node of a service of the kernel, in the folder kernel.
func AddService(name string, dev uint64) linux.Errno {
	dir := Dev().Root.Child("kernel")
	if dir == nil {
		return linux.ENOENT
	}
	return addChar(dir, name, dev)
}

func addChar(dir *vfs.Dentry, name string, dev uint64) linux.Errno {
	i, e := Dev().Make(&vfs.NewNode{Mode: linux.S_IFCHR | 0o666, Rdev: dev})
	if e == 0 {
		_, e = dir.AddChild(name, i)
	}
	return e
}

// RemoveDisk takes it away.
func RemoveDisk(name string) { Dev().Root.RemoveChild(name) }

// pts is the one devpts.
var pts = sync.OnceValue(func() *tmpfs.FS {
	fs := tmpfs.New(tmpfs.Options{Type: "devpts", Magic: linux.DEVPTS_SUPER_MAGIC, Mode: 0o755})
	fs.Destroy, fs.Stat, fs.BlockSize = nil, nil, 1024
	fs.Flags &^= vfs.FSXattr
	i, e := fs.Make(&vfs.NewNode{Mode: linux.S_IFCHR | 0o666, Rdev: linux.Makedev(5, 2)})
	if e == 0 {
		_, e = fs.Root.AddChild("ptmx", i)
	}
	if e != 0 {
		panic("devfs: ptmx: " + e.Error())
	}
	fs.Root.Inode.Node = ptsDir{fs.RootNode()}
	return fs
})

// ptsDir is the root of devpts: names come and go with terminals only.
type ptsDir struct{ vfs.NodeOps }

// Create refuses files and everything else.
func (ptsDir) Create(_ *caller.Ctx, _ *vfs.Inode, _ string, n vfs.NewNode) (*vfs.Inode, linux.Errno) {
	if n.Mode&linux.S_IFMT == linux.S_IFREG {
		return nil, linux.EACCES
	}
	return nil, linux.EPERM
}

// Link refuses.
func (ptsDir) Link(*caller.Ctx, *vfs.Inode, string, *vfs.Inode) linux.Errno { return linux.EPERM }

// Unlink refuses.
func (ptsDir) Unlink(*caller.Ctx, *vfs.Inode, string, *vfs.Inode) linux.Errno { return linux.EPERM }

// Rename refuses.
func (ptsDir) Rename(*caller.Ctx, *vfs.Inode, string, *vfs.Inode, string, uint32) linux.Errno {
	return linux.EPERM
}

// AddPTS makes /dev/pts/n for a new pseudo-terminal whose owner is the caller.
func AddPTS(c *caller.Ctx, n uint32) linux.Errno {
	cred := c.Cred()
	i, e := pts().Make(&vfs.NewNode{Mode: linux.S_IFCHR | 0o620, UID: cred.FSUID, GID: ttyGroup, Rdev: linux.Makedev(ptsMajor+n/ptsPerDev, n%ptsPerDev)})
	if e == 0 {
		_, e = pts().Root.AddChild(strconv.FormatUint(uint64(n), 10), i)
	}
	return e
}

// RemovePTS takes /dev/pts/n away.
func RemovePTS(n uint32) { pts().Root.RemoveChild(strconv.FormatUint(uint64(n), 10)) }

// PTSPath is where pseudo-terminal n is for whoever opened its master at ptmx: in the
// devpts that has ptmx itself, or in the one mounted on "pts" beside it. It is zero
// when there is none.
func PTSPath(ptmx vfs.Path, n uint32) vfs.Path {
	d := pts().Root.Child(strconv.FormatUint(uint64(n), 10))
	if d == nil || ptmx.Mnt == nil {
		return vfs.Path{}
	}
	if ptmx.Mnt.FS == pts().FileSystem {
		return vfs.Path{Mnt: ptmx.Mnt, Dentry: d}
	}
	dir := ptmx.Dentry.Parent()
	for _, m := range ptmx.Namespace().Mounts() {
		at, ok := m.Point()
		if ok && m.FS == pts().FileSystem && at.Mnt == ptmx.Mnt && at.Dentry.Parent() == dir && at.Dentry.Name() == "pts" {
			return vfs.Path{Mnt: m, Dentry: d}
		}
	}
	return vfs.Path{}
}

// Mount mounts /dev, /dev/pts and /dev/shm.
func Mount(c *caller.Ctx, ctx *vfs.FSContext) linux.Errno {
	if e := vfs.KernelMount(c, ctx, Dev().FileSystem, "devtmpfs", "/dev", linux.MS_NOSUID|linux.MS_RELATIME); e != 0 {
		return e
	}
	if e := vfs.KernelMount(c, ctx, pts().FileSystem, "devpts", "/dev/pts", linux.MS_NOSUID|linux.MS_NOEXEC|linux.MS_RELATIME); e != 0 {
		return e
	}
	return vfs.KernelMount(c, ctx, tmpfs.New(tmpfs.Options{}).FileSystem, "tmpfs", "/dev/shm", linux.MS_NOSUID|linux.MS_NODEV|linux.MS_RELATIME)
}
