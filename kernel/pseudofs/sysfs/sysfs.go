// Package sysfs is /sys, as far as common programs use it: CPUs, huge pages, network
// interfaces. The tree is made once; texts are made at each read.
package sysfs

import (
	"strings"
	"sync"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/base/wait"
	"hardtack/kernel/fs/vfs"
)

var fs = newFS()

func newFS() *vfs.FileSystem {
	f := vfs.NewFileSystem("sysfs", linux.SYSFS_MAGIC, vfs.FSInTree)
	d := &dir{}
	d.Init(f, d, &vfs.NewNode{Mode: linux.S_IFDIR | 0o555})
	f.Root = vfs.NewRoot(&d.Inode)
	return f
}

// Type is sysfs for mount(2).
var Type = vfs.FSType{Make: func(string) (*vfs.FileSystem, linux.Errno) { return FS(), 0 }}

// FS is the one sysfs.
func FS() *vfs.FileSystem {
	fill()
	return fs
}

// Mount mounts it on /sys.
func Mount(c *caller.Ctx, ctx *vfs.FSContext) linux.Errno {
	return vfs.KernelMount(c, ctx, FS(), "sysfs", "/sys", linux.MS_NOSUID|linux.MS_NODEV|linux.MS_NOEXEC|linux.MS_RELATIME)
}

// dir is a directory that only the kernel changes.
type dir struct {
	vfs.BaseNode
	vfs.Inode
}

// SetAttr changes what is asked for.
func (d *dir) SetAttr(_ *caller.Ctx, i *vfs.Inode, a *vfs.Attr) linux.Errno {
	i.Apply(a)
	return 0
}

// Rename refuses.
func (*dir) Rename(_ *caller.Ctx, _ *vfs.Inode, _ string, _ *vfs.Inode, _ string, flags uint32) linux.Errno {
	if flags != 0 {
		return linux.EINVAL
	}
	return linux.EPERM
}

// Open opens for listing.
func (*dir) Open(*caller.Ctx, vfs.Path, uint32) (vfs.Ops, linux.Errno) { return openDir{}, 0 }

// openDir is an open directory.
type openDir struct{ vfs.DirOps }

// Seek moves in the listing, as generic_file_llseek does.
func (openDir) Seek(_ *caller.Ctx, f *vfs.File, off int64, whence int) (int64, linux.Errno) {
	return vfs.SeekSized(f, off, whence, 0, vfs.SmallMax)
}

// file is a text.
type file struct {
	vfs.BaseNode
	vfs.BaseOps
	vfs.Inode
	text  func() string            // immutable
	write func(string) linux.Errno // immutable; nil: it cannot be written
}

// SetAttr changes what is asked for, but for the length: O_TRUNC has no effect.
func (f *file) SetAttr(_ *caller.Ctx, i *vfs.Inode, a *vfs.Attr) linux.Errno {
	b := *a
	b.Mask &^= vfs.AttrSize
	i.Apply(&b)
	return 0
}

// Open needs nothing of its own. To write, it mostly refuses root too.
func (f *file) Open(_ *caller.Ctx, _ vfs.Path, flags uint32) (vfs.Ops, linux.Errno) {
	if f.write != nil {
		return f, 0
	}
	if a := flags & linux.O_ACCMODE; a == linux.O_WRONLY || a == linux.O_RDWR {
		return nil, linux.EACCES
	}
	return f, 0
}

// Read makes the text again each time: it is a line or two.
func (f *file) Read(_ *caller.Ctx, _ *vfs.File, v *uio.Vec, off int64) (int, linux.Errno) {
	b := []byte(f.text())
	if off >= int64(len(b)) {
		return 0, 0
	}
	n, e := v.CopyOut(b[off:])
	if n > 0 {
		e = 0
	}
	return n, e
}

// Write hands what is written to whom it is for, wherever in the file that is.
func (f *file) Write(_ *caller.Ctx, _ *vfs.File, v *uio.Vec, _ int64) (int, linux.Errno) {
	if f.write == nil {
		return 0, linux.EIO
	}
	b := make([]byte, min(v.Len(), maxWrite))
	n, e := v.CopyIn(b)
	if n == 0 {
		return 0, e
	}
	if e := f.write(string(b[:n])); e != 0 {
		return 0, e
	}
	return n, 0
}

// maxWrite bounds what is written at once.
const maxWrite = 4096

// Seek moves the position; the end is where the inode's size says.
func (x *file) Seek(_ *caller.Ctx, f *vfs.File, off int64, whence int) (int64, linux.Errno) {
	return vfs.SeekSized(f, off, whence, x.Size(), vfs.SmallMax)
}

// never is the queue of all files: epoll takes them, and they are always ready.
var never wait.Queue

// Queue is where nothing is announced.
func (*file) Queue(*vfs.File) *wait.Queue { return &never }

// link is a symbolic link.
type link struct {
	vfs.BaseNode
	vfs.Inode
	target string // immutable
}

// SetAttr changes what is asked for.
func (l *link) SetAttr(_ *caller.Ctx, i *vfs.Inode, a *vfs.Attr) linux.Errno {
	i.Apply(a)
	return 0
}

// ReadLink returns the link's text.
func (l *link) ReadLink(*caller.Ctx, *vfs.Inode) (string, linux.Errno) { return l.target, 0 }

// Add makes a file, and the directories it is in; an existing one stays.
func Add(path string, text func() string) {
	parent, name := mkdirs(path)
	add(parent, name, text)
}

// add makes a file in a directory; an existing one stays.
func add(parent *vfs.Dentry, name string, text func() string) {
	f := &file{text: text}
	f.Init(fs, f, &vfs.NewNode{Mode: linux.S_IFREG | 0o444})
	f.SetSize(4096)
	parent.AddChild(name, &f.Inode)
}

// AddWritable is Add for a file that its owner may write, too.
func AddWritable(path string, text func() string, write func(string) linux.Errno) {
	parent, name := mkdirs(path)
	f := &file{text: text, write: write}
	f.Init(fs, f, &vfs.NewNode{Mode: linux.S_IFREG | 0o644})
	f.SetSize(4096)
	parent.AddChild(name, &f.Inode)
}

// Link makes a symbolic link.
func Link(path, target string) {
	parent, name := mkdirs(path)
	l := &link{target: target}
	l.Init(fs, l, &vfs.NewNode{Mode: linux.S_IFLNK | 0o777})
	l.SetSize(int64(len(target)))
	parent.AddChild(name, &l.Inode)
}

// Remove takes a file, a link, or a directory with all that it holds away.
func Remove(path string) {
	d := fs.Root
	parts := strings.Split(path, "/")
	for _, p := range parts[:len(parts)-1] {
		if d = d.Child(p); d == nil {
			return
		}
	}
	d.RemoveTree(parts[len(parts)-1])
}

// mkdirs makes what is above path and returns the last directory and name.
func mkdirs(path string) (*vfs.Dentry, string) {
	parts := strings.Split(path, "/")
	d := fs.Root
	for _, p := range parts[:len(parts)-1] {
		next := d.Child(p)
		if next == nil {
			n := &dir{}
			n.Init(fs, n, &vfs.NewNode{Mode: linux.S_IFDIR | 0o555})
			next, _ = d.AddChild(p, &n.Inode)
			if next == nil { // somebody else was faster
				next = d.Child(p)
			}
		}
		d = next
	}
	return d, parts[len(parts)-1]
}

// fill makes the fixed part, when the number of CPUs is known.
var fill = sync.OnceFunc(func() {
	addCPUs()
	Add("devices/system/clocksource/clocksource0/current_clocksource", func() string { return "tsc\n" })
	Add("devices/system/clocksource/clocksource0/available_clocksource", func() string { return "tsc \n" })
	Add("kernel/mm/transparent_hugepage/enabled", func() string { return "always madvise [never]\n" })
	Add("kernel/mm/transparent_hugepage/defrag", func() string { return "always defer defer+madvise madvise [never]\n" })
	Add("kernel/mm/transparent_hugepage/hpage_pmd_size", func() string { return "2097152\n" })
	Add("kernel/mm/transparent_hugepage/shmem_enabled", func() string { return "always within_size advise [never] deny force\n" })
	mkdirs("kernel/mm/hugepages/x")
	mkdirs("fs/x")
	mkdirs("block/x")
	mkdirs("bus/x")
	mkdirs("module/x")
})
