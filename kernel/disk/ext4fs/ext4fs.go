// Package ext4fs mounts ext4's file system on the block layer's disks and
// gives it to the vfs: names are kept in the vfs's tree, file contents in the page
// cache, everything else is ext4's.
//
// An inode in use has one node, found by its number (FS.inodes): hard links lead to
// the same one. The node holds a reference of the ext4 inode from its first look-up
// until its names and open files are gone, or the file system is unmounted. The table
// holds it weakly: a node lives as long as the tree of names, an open file or pages in
// the cache lead to it, and the garbage collector gives the reference back. Where there
// are many, names that were not used lately leave the tree.
//
// Attributes: link counts, owner, mode and times of changes of names are ext4's and
// taken over into the vfs's inode after each change (vfs.FSAttrs). Size and times of a
// file's content are the vfs inode's, newer than the disk's until its pages are
// written; so is the access time, which is stored when the file system is synced.
//
// Lock order: vfs.Inode.Mu; pagecache's; FS.mu; ext4's. FS.mu is held for moments.
package ext4fs

import (
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"weak"

	"hardtack/abi/linux"
	"hardtack/ext4"
	"hardtack/kernel/base/clocks"
	"hardtack/kernel/base/mem"
	"hardtack/kernel/disk/block"
	"hardtack/kernel/disk/volume"
	"hardtack/kernel/fs/vfs"
	"hardtack/kernel/mm/pagecache"
)

// FS is one mounted file system.
type FS struct {
	*vfs.FileSystem
	ext     *ext4.FS
	part    *block.Part // nil in tests
	sector  int         // the device's block size in bytes; immutable
	options options     // immutable but for what a remount changes

	nodes   atomic.Int64 // in memory
	shrink  atomic.Bool  // a goroutine checks whether there are too many
	wanted  atomic.Int64 // nodes from which on that is worth a look
	counted atomic.Int64 // nodes that the collector's limit has room for

	mu     sync.Mutex
	inodes map[uint32]weak.Pointer[vfs.Inode] // in memory; guarded by mu
	atimes map[*vfs.Inode]bool                // whose access time is newer than the disk's; guarded by mu

	stop   chan struct{} // closed when the file system is unmounted
	failed atomic.Bool   // it was told that the disk is read-only now
}

// options are what mount says.
type options struct {
	discard, noLoad bool
	commit          time.Duration
}

// mounted are the file systems by device number: a disk that is mounted twice has
// one file system.
var mounted struct {
	mu sync.Mutex
	m  map[uint64]*FS // guarded by mu
}

// Type is ext4 for mount(2).
var Type = vfs.FSType{Open: open, Remount: remount}

// open is mount(2)'s: it finds or mounts what is on a device.
func open(rdev uint64, flags uint32, data string) (*vfs.FileSystem, linux.Errno) {
	o, e := parse(data)
	if e != 0 {
		return nil, e
	}
	p := block.ByNumber(rdev)
	if p == nil {
		return nil, linux.ENXIO
	}
	mounted.mu.Lock()
	defer mounted.mu.Unlock()
	readOnly := flags&linux.MS_RDONLY != 0
	if fs := mounted.m[rdev]; fs != nil {
		if fs.ext.ReadOnly() != readOnly || !fs.TryHold() {
			return nil, linux.EBUSY // the other way, or on its way out
		}
		return fs.FileSystem, 0
	}
	if p.Disk.Limits().ReadOnly && !readOnly {
		return nil, linux.EACCES // mount(8) tries again, read-only
	}
	if !p.Claim() {
		return nil, linux.EBUSY
	}
	fs, err := Mount(volume.Volume{Part: p}, readOnly, o)
	if err != nil {
		p.Release()
		block.Log("ext4: %s: %v", p.Name, err)
		return nil, mountErrno(err)
	}
	fs.part = p
	fs.Dev = rdev
	if mounted.m == nil {
		mounted.m = map[uint64]*FS{}
	}
	mounted.m[rdev] = fs
	fs.Hold()
	return fs.FileSystem, 0
}

// remount is mount(2)'s MS_REMOUNT: read-only, the disk left clean, and back.
func remount(v *vfs.FileSystem, flags uint32, data string) linux.Errno {
	if _, e := parse(data); e != 0 {
		return e
	}
	mounted.mu.Lock()
	defer mounted.mu.Unlock()
	fs := mounted.m[v.Dev]
	readOnly := flags&linux.MS_RDONLY != 0
	switch {
	case fs == nil:
		return linux.EINVAL
	case fs.ext.ReadOnly() == readOnly:
		return 0
	case readOnly && v.Writers() > 0:
		return linux.EBUSY
	case !readOnly && fs.part.Disk.Limits().ReadOnly:
		return linux.EACCES
	}
	if readOnly {
		fs.sync()
	}
	return fs.errno(fs.ext.Remount(readOnly))
}

// mountErrno is what mount(2) says where ext4 has an error: EINVAL for what is no
// file system of this kind or one with unknown features, as Linux.
func mountErrno(err error) linux.Errno {
	switch e := ext4.Errno(err); e {
	case linux.EOPNOTSUPP:
		return linux.EINVAL
	default:
		return e
	}
}

// parse reads mount options.
func parse(data string) (o options, e linux.Errno) {
	o.commit = 5 * time.Second
	for opt := range strings.SplitSeq(data, ",") {
		key, val, has := strings.Cut(opt, "=")
		switch key {
		case "", "user_xattr", "acl", "nobarrier", "barrier", "delalloc", "nouid32", "noinit_itable", "init_itable", "auto_da_alloc", "block_validity":
			if key == "nobarrier" || key == "barrier" && val == "0" {
				return o, linux.EINVAL // flushes are not left out
			}
		case "data":
			if val != "ordered" {
				return o, linux.EINVAL
			}
		case "errors":
			if val != "remount-ro" {
				return o, linux.EINVAL
			}
		case "commit":
			n, err := strconv.ParseUint(val, 10, 16)
			if err != nil {
				return o, linux.EINVAL
			}
			if n > 0 {
				o.commit = time.Duration(n) * time.Second
			}
		case "discard", "nodiscard":
			o.discard = key == "discard"
		case "noload", "norecovery":
			o.noLoad = true
		default: // quotas among them
			block.Log("ext4: mount option %q is not supported", key)
			return o, linux.EINVAL
		}
		_ = has
	}
	return o, 0
}

// Mount mounts the file system on a device and starts what writes it back.
func Mount(dev ext4.BlockDevice, readOnly bool, o options) (*FS, error) {
	ext, err := ext4.Mount(dev, ext4.Options{
		ReadOnly: readOnly, NoLoad: o.noLoad, Discard: o.discard, Now: clocks.Realtime,
		CacheBlocks: min(max(mem.Total()/64, 256), 16384), Background: func(do func()) { go do() },
		Processors: runtime.GOMAXPROCS(0), Processor: block.Processor,
	})
	if err != nil {
		return nil, err
	}
	fs := &FS{
		FileSystem: vfs.NewFileSystem("ext4", linux.EXT4_SUPER_MAGIC, vfs.FSXattr|vfs.FSAttrs|vfs.FSDirect),
		ext:        ext, options: o, sector: dev.BlockSize(), inodes: map[uint32]weak.Pointer[vfs.Inode]{}, atimes: map[*vfs.Inode]bool{}, stop: make(chan struct{}),
	}
	in, err := ext.Root()
	if err != nil {
		ext.Unmount()
		return nil, err
	}
	fs.Root = vfs.NewRoot(fs.enter(in))
	fs.BlockSize = int64(ext.BlockSize())
	fs.MaxBytes = (1<<32 - 1) * int64(ext.BlockSize())
	fs.FileSystem.Stat = ext.Statfs
	fs.FileSystem.Destroy = fs.destroy
	fs.FileSystem.Options = fs.mountOptions
	fs.FileSystem.Sync = fs.sync
	fs.FileSystem.Accessed = fs.accessed
	fs.FileSystem.Handles = handles{fs}
	fs.wanted.Store(nodeStep())
	unsqueezed.Do(func() { mem.OnPressure(squeeze) })
	inUse.Store(fs, nil)
	go fs.committer(o.commit)
	return fs, nil
}

func (fs *FS) mountOptions() string {
	s := ",errors=remount-ro"
	if fs.options.discard {
		s += ",discard"
	}
	if n := fs.options.commit / time.Second; n != 5 {
		s += fmt.Sprintf(",commit=%d", n)
	}
	return s
}

// enter makes the node of an ext4 inode, whose reference it takes over, or finds it.
func (fs *FS) enter(in *ext4.Inode) *vfs.Inode { return fs.enterIf(in, false) }

// enterNamed is enter for an inode that may lose its last name meanwhile: nil if it has
// none, and no node. Whoever takes names away has a node.
func (fs *FS) enterNamed(in *ext4.Inode) *vfs.Inode { return fs.enterIf(in, true) }

func (fs *FS) enterIf(in *ext4.Inode, named bool) *vfs.Inode {
	var st linux.Stat
	if !named {
		in.Stat(&st)
	}
	fs.mu.Lock()
	if i := fs.inodes[in.Ino()].Value(); i != nil {
		fs.mu.Unlock()
		fs.ext.Put(in) // never the last: the node has one
		return i
	}
	if named {
		if in.Stat(&st); st.Nlink == 0 {
			fs.mu.Unlock()
			fs.ext.Put(in)
			return nil
		}
	}
	i := fs.newNode(in, &st)
	fs.inodes[in.Ino()] = weak.Make(i)
	fs.mu.Unlock()
	if fs.nodes.Add(1) > fs.wanted.Load() && fs.shrink.CompareAndSwap(false, true) {
		go fs.crowded()
	}
	return i
}

// collected is called some time after the last reference to a node went.
func (fs *FS) collected(in *ext4.Inode) {
	fs.mu.Lock()
	if fs.inodes[in.Ino()].Value() == nil {
		delete(fs.inodes, in.Ino())
	}
	fs.mu.Unlock()
	fs.ext.Put(in)
	fs.nodes.Add(-1)
}

// find returns the node of an inode's number.
func (fs *FS) find(ino uint32) (*vfs.Inode, linux.Errno) {
	fs.mu.Lock()
	i := fs.inodes[ino].Value()
	fs.mu.Unlock()
	if i != nil {
		return i, 0
	}
	in, err := fs.ext.Get(ino)
	if err != nil {
		return nil, fs.errno(err)
	}
	return fs.enter(in), 0
}

// forget takes a node out of the table.
func (fs *FS) forget(i *vfs.Inode) {
	fs.mu.Lock()
	if fs.inodes[uint32(i.Ino)].Value() == i {
		delete(fs.inodes, uint32(i.Ino))
	}
	delete(fs.atimes, i)
	fs.mu.Unlock()
}

// errno turns ext4's error into an errno, and tells the log once when the file
// system has gone read-only for one.
func (fs *FS) errno(err error) linux.Errno {
	if err == nil {
		return 0
	}
	e := ext4.Errno(err)
	if (e == linux.EUCLEAN || e == linux.EIO) && fs.ext.ReadOnly() && !fs.failed.Swap(true) {
		name := "a disk"
		if fs.part != nil {
			name = fs.part.Name
		}
		block.Log("ext4: %s: %v", name, err)
		fs.WriteErrors.Set(linux.EIO) // changes are lost, whoever had made them
	}
	return e
}

// accessed hears of new access times, which are stored later.
func (fs *FS) accessed(i *vfs.Inode) {
	if fs.ext.ReadOnly() {
		return
	}
	fs.mu.Lock()
	if fs.inodes[uint32(i.Ino)].Value() == i {
		fs.atimes[i] = true
	}
	if len(fs.atimes)%maxAtimes == maxAtimes-1 { // they keep their nodes in memory
		go fs.storeTimes()
	}
	fs.mu.Unlock()
}

// maxAtimes access times are kept back.
const maxAtimes = 1024

// storeTimes writes the access times that are only in memory.
func (fs *FS) storeTimes() {
	fs.mu.Lock()
	list := fs.atimes
	if len(list) > 0 {
		fs.atimes = map[*vfs.Inode]bool{}
	}
	fs.mu.Unlock()
	for i := range list {
		n := nodeOf(i)
		at, _, ct := i.Times()
		fs.ext.SetAttr(n.in, ext4.Attr{Atime: &at, Ctime: &ct})
	}
}

// sync makes everything durable. Of data that could not be written WriteErrors tells,
// and of a commit that failed in the background.
func (fs *FS) sync() linux.Errno {
	pagecache.WriteAll(fs) // errors are in WriteErrors
	if fs.ext.ReadOnly() {
		return 0
	}
	fs.storeTimes()
	return fs.errno(fs.ext.Sync())
}

// committer commits what changed every few seconds.
func (fs *FS) committer(every time.Duration) {
	t := time.NewTicker(every)
	defer t.Stop()
	for {
		select {
		case <-fs.stop:
			return
		case <-t.C:
			if fs.nodes.Load() > fs.budget() && fs.shrink.CompareAndSwap(false, true) {
				go fs.crowded()
			}
			if !fs.ext.ReadOnly() {
				fs.storeTimes()
				fs.errno(fs.ext.Sync())
			}
		}
	}
}

// SyncAll syncs all file systems of this kind (sync(2)).
func SyncAll() {
	mounted.mu.Lock()
	var list []*FS
	for _, fs := range mounted.m {
		if fs.TryHold() {
			list = append(list, fs)
		}
	}
	mounted.mu.Unlock()
	for _, fs := range list {
		fs.sync()
		fs.Drop()
	}
}

// destroy unmounts: nobody uses the file system any more. A disk that cannot be left
// clean is left to the next mount, and the caller hears of it.
func (fs *FS) destroy() linux.Errno {
	close(fs.stop)
	inUse.Delete(fs)
	fs.sync()
	fs.mu.Lock()
	list := fs.inodes
	fs.inodes = map[uint32]weak.Pointer[vfs.Inode]{}
	fs.mu.Unlock()
	for _, w := range list {
		if i := w.Value(); i != nil {
			nodeOf(i).close()
		}
	}
	// Nodes that the collector has not been at yet may have the last references of
	// files that were removed, which would wait on the disk for the next mount.
	for try := 0; fs.nodes.Load() > 0 && try < 100; try++ {
		runtime.GC()
		time.Sleep(time.Millisecond)
	}
	mem.HeapCache(-fs.counted.Swap(0) * nodeBytes)
	e := fs.errno(fs.ext.Unmount())
	if fs.part != nil {
		mounted.mu.Lock()
		delete(mounted.m, fs.Dev)
		mounted.mu.Unlock()
		fs.part.Release()
	}
	return e
}

// Shutdown leaves all disks clean when the machine ends, whoever still uses them:
// what is done afterwards fails, or is lost.
func Shutdown() {
	mounted.mu.Lock()
	defer mounted.mu.Unlock()
	for _, fs := range mounted.m {
		if !fs.ext.ReadOnly() {
			fs.sync()
			fs.errno(fs.ext.Unmount())
		}
	}
}
