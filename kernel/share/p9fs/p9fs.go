// Package p9fs mounts folders of the host, which it serves by 9P2000.L over virtio
// (kernel/share/p9 is the client).
//
// The host is free to change a folder at any time. With cache=none (the default) every use
// of a name, of attributes and of data asks it; names are in the vfs's tree all the same,
// which asks before it believes itself (vfs.FSAsk). With cache=loose names, attributes and
// data are kept as if nobody else could change them, and data are written back later.
//
// A file in use has one node, found by the number that the server knows it by, however many
// names it has. A node has a number of its own with the server (a fid) for each name that it
// was found by, up to a few; requests use the last. QEMU, the server there is, keeps paths
// behind these numbers: one of a name that has gone is of no use, and asking for the
// attributes behind one is the same as looking the name up.
//
// Files that are open have further numbers, shared by all who have them open: one to read
// and write, or to read, or to write, as the host permits.
//
// A file without names lives on while it is open. Its attributes are the kernel's then,
// since the server finds attributes by path: it cannot say or change them. It can read and
// write.
//
// Lock order: vfs.Inode.Mu; pagecache's; file.mu; FS.mu and names.mu, which are leaves.
package p9fs

import (
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"weak"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/mem"
	"hardtack/kernel/fs/vfs"
	"hardtack/kernel/mm/pagecache"
	"hardtack/kernel/share/p9"
)

// magic is V9FS_MAGIC.
const magic = 0x01021997

// FS is one mounted folder.
type FS struct {
	*vfs.FileSystem
	c       *p9.Client // immutable
	tag     string     // immutable
	options options    // immutable
	root    *node      // immutable

	count  atomic.Int64 // nodes in memory
	wanted atomic.Int64 // from which on it is worth a look
	room   atomic.Int64 // nodes that the collector's limit has room for
	shrink atomic.Bool  // a goroutine takes names out of the tree

	mu    sync.Mutex
	nodes map[uint64]weak.Pointer[vfs.Inode] // in memory; guarded by mu
	ready *file                              // was created, and is open before anybody opened it; guarded by mu
}

// options are what mount says.
type options struct {
	loose bool
	msize int
}

// devices are the transports by tag. One serves one mount.
var devices struct {
	mu sync.Mutex
	m  map[string]*device // guarded by mu
}

type device struct {
	t    p9.Transport
	busy bool
}

// Add makes a transport known.
func Add(t p9.Transport) {
	devices.mu.Lock()
	defer devices.mu.Unlock()
	if devices.m == nil {
		devices.m = map[string]*device{}
	}
	devices.m[t.Tag()] = &device{t: t}
}

// Type is 9p for mount(2).
var Type = vfs.FSType{MakeFrom: mount}

// defaultMsize is the size of messages that mount asks for, if it is not told.
const defaultMsize = 128<<10 + 4096

// parse reads mount options, those of Linux. Which user a request is made for
// (access) makes no difference to QEMU.
func parse(data string) (o options, e linux.Errno) {
	o.msize = defaultMsize
	for opt := range strings.SplitSeq(data, ",") {
		key, val, _ := strings.Cut(opt, "=")
		good := false
		switch key {
		case "":
			good = true
		case "trans":
			good = val == "virtio"
		case "version":
			good = val == "9p2000.L"
		case "cache":
			good = val == "none" || val == "loose"
			o.loose = val == "loose"
		case "access":
			good = val == "client" || val == "user" || val == "any"
		case "uname", "aname":
			good = true
		case "msize":
			n, err := strconv.ParseUint(val, 10, 31)
			good = err == nil && n >= 4096
			o.msize = int(n)
		}
		if !good {
			return o, linux.EINVAL
		}
	}
	return o, 0
}

// mount is mount(2)'s.
func mount(source, data string) (*vfs.FileSystem, linux.Errno) {
	o, e := parse(data)
	if e != 0 {
		return nil, e
	}
	if source == "" {
		return vfs.NewFileSystem("9p", magic, 0), 0 // the options are good
	}
	devices.mu.Lock()
	d := devices.m[source]
	switch {
	case d == nil:
		e = linux.ENOENT
	case d.busy:
		e = linux.EBUSY
	default:
		d.busy = true
	}
	devices.mu.Unlock()
	if e != 0 {
		return nil, e
	}
	fs, e := Mount(d.t, o)
	if e != 0 {
		release(source)
		return nil, e
	}
	return fs.FileSystem, 0
}

// release lets a transport be mounted again.
func release(tag string) {
	devices.mu.Lock()
	defer devices.mu.Unlock()
	if d := devices.m[tag]; d != nil {
		d.busy = false
	}
}

// Mount begins a conversation over a transport.
func Mount(t p9.Transport, o options) (*FS, linux.Errno) {
	c := p9.New(t)
	fid, q, e := c.Begin(nil, o.msize)
	if e != 0 {
		return nil, e
	}
	flags := vfs.FSXattr | vfs.FSAttrs | vfs.FSDirect
	if !o.loose {
		flags |= vfs.FSAsk
	}
	fs := &FS{FileSystem: vfs.NewFileSystem("9p", magic, flags), c: c, tag: t.Tag(), options: o, nodes: map[uint64]weak.Pointer[vfs.Inode]{}}
	var a p9.Attr
	if e = c.Getattr(nil, fid, &a); e == 0 && (a.Stat.Mode&linux.S_IFMT != linux.S_IFDIR || a.QID.Path != q.Path) {
		e = linux.EIO
	}
	if e != 0 {
		c.Clunk(fid)
		return nil, e
	}
	fs.wanted.Store(nodeStep())
	i := fs.newNode(&a, &names{list: []name{{fid: fid}}})
	fs.nodes[q.Path] = weak.Make(i)
	fs.root = nodeOf(i)
	fs.Root = vfs.NewRoot(i)
	fs.FileSystem.Stat = fs.statfs
	fs.FileSystem.Destroy = fs.destroy
	fs.FileSystem.Options = fs.mountOptions
	fs.FileSystem.Sync = fs.sync
	mounted.Store(fs, nil)
	unsqueezed.Do(func() { mem.OnPressure(squeeze) })
	return fs, 0
}

func (fs *FS) mountOptions() string {
	s := ",trans=virtio,version=9p2000.L,access=client,msize=" + strconv.Itoa(fs.c.MaxData()+24)
	if fs.options.loose {
		return s + ",cache=loose"
	}
	return s + ",cache=none"
}

func (fs *FS) statfs(st *linux.Statfs) { fs.c.Statfs(nil, fs.root.fid(), st) }

// sync writes back what is dirty.
func (fs *FS) sync() linux.Errno {
	pagecache.WriteAll(fs) // errors are in WriteErrors
	return 0
}

// SyncAll is sync(2).
func SyncAll() {
	mounted.Range(func(x, _ any) bool {
		x.(*FS).sync()
		return true
	})
}

// destroy unmounts.
func (fs *FS) destroy() linux.Errno {
	mounted.Delete(fs)
	fs.sync()
	fs.mu.Lock()
	list := fs.nodes
	fs.nodes, fs.ready = map[uint64]weak.Pointer[vfs.Inode]{}, nil
	fs.mu.Unlock()
	for _, w := range list {
		if i := w.Value(); i != nil {
			nodeOf(i).close()
		}
	}
	mem.HeapCache(-fs.room.Swap(0) * nodeBytes)
	release(fs.tag)
	return 0
}

// nodeBytes is about what a node takes of the kernel's heap, with its name and place.
const nodeBytes = 1408

// nodeStep is how many nodes are made between two looks at the memory: a 64th of it.
func nodeStep() int64 { return max(int64(mem.Total())*(mem.PageSize/64)/nodeBytes, 256) }

// crowded takes names out of the tree that were not used lately, down to half of what is
// let be: an 8th of memory.
func (fs *FS) crowded() {
	defer fs.shrink.Store(false)
	most := nodeStep() * 8
	if over := fs.count.Load() - most/2; over > most/2 {
		for range 2 {
			fs.Shrink(int(over), drop)
		}
		runtime.GC()
	}
	fs.wanted.Store(fs.count.Load() + nodeStep())
	room := fs.wanted.Load()
	mem.HeapCache((room - fs.room.Swap(room)) * nodeBytes)
}

// drop lets go of the pages of a file whose name may leave the tree.
func drop(i *vfs.Inode) bool {
	f, ok := i.Node.(*file)
	if !ok {
		return true
	}
	f.pages.Clean(0, ^uint64(0))
	return f.pages.Pages() == 0
}

var (
	unsqueezed sync.Once
	mounted    sync.Map // of *FS
)

// squeeze takes all names out of the trees that nobody uses just now.
func squeeze() (bytes int64) {
	mounted.Range(func(x, _ any) bool {
		bytes += int64(x.(*FS).Shrink(1<<30, drop)) * nodeBytes
		return true
	})
	return bytes
}

// enter returns the node that a server's answer is about: the one there is, or a new one.
// It takes over fid, by which the file has a name in directory dir.
func (fs *FS) enter(c *caller.Ctx, dir *node, nm string, fid uint32, a *p9.Attr) *vfs.Inode {
	is := name{dir: dir.Ino, name: nm, fid: fid}
	fs.mu.Lock()
	if i := fs.nodes[a.QID.Path].Value(); i != nil && nodeOf(i).takes(&is, a) {
		fs.mu.Unlock()
		nodeOf(i).adopt(c, a)
		return i
	}
	i := fs.newNode(a, &names{list: []name{is}})
	fs.nodes[a.QID.Path] = weak.Make(i)
	fs.mu.Unlock()
	if fs.count.Load() > fs.wanted.Load() && fs.shrink.CompareAndSwap(false, true) {
		go fs.crowded()
	}
	return i
}

// forget takes a node out of the table.
func (fs *FS) forget(n *node) {
	fs.mu.Lock()
	if fs.nodes[n.Ino].Value() == &n.Inode {
		delete(fs.nodes, n.Ino)
	}
	fs.mu.Unlock()
}

// collected is called some time after the last reference to a node went.
func (fs *FS) collected(x *names) {
	fs.mu.Lock()
	if fs.nodes[x.path].Value() == nil {
		delete(fs.nodes, x.path)
	}
	fs.mu.Unlock()
	fs.count.Add(-1)
	x.end(fs.c)
}
