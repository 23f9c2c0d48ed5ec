// Package procfs is /proc.
//
// Nothing is stored: every look-up makes a node from a description (entry) and its
// subject (a process, a thread, a descriptor). Text is made when it is read, with the
// reader's rights; an open file keeps a page or two of it at most. Other packages add
// files with Register.
//
// Lock order: the mu of an open file, a pressure file's and that of registered are taken first; what
// makes a text may take any lock of the process code.
package procfs

import (
	"hash/fnv"
	"math"
	"strconv"
	"strings"
	"sync"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/creds"
	"hardtack/kernel/base/sysctl"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/fs/vfs"
	"hardtack/kernel/process/proc"
)

// entry describes a file of /proc; immutable. One of read, memory, maps, link,
// jump or list (with find) says what it is.
type entry struct {
	name  string
	mode  uint32 // permissions
	read  func(x *about) ([]byte, linux.Errno)
	ahead int // with read: an open file may keep so much of the text
	// memory reads b at an offset of a text that is in the program's memory; who
	// may is asked at open, or the text is public.
	memory  func(p *taken, b []byte, off uint64) int
	public  bool
	stays   bool // with memory: it needs no address space
	maps    bool // with sizes if it is smaps
	sizes   bool
	rollup  bool                                       // smaps_rollup
	numa    bool                                       // with maps: numa_maps
	admin   bool                                       // only for CAP_SYS_ADMIN
	ctl     *sysctl.File                               // of /proc/sys
	sized   bool                                       // lseek knows an end, which is 0, as generic_file_llseek does
	mem     bool                                       // the process's memory
	pages   bool                                       // with mem: entries of its pages
	mounts  bool                                       // with read: polls for changes of the mounts
	own     bool                                       // a directory with which the process itself may do everything
	fixed   bool                                       // nobody changes it
	strict  bool                                       // capabilities override no permission bits
	noWrite bool                                       // does not open for writing, whoever asks
	inside  bool                                       // a directory that opens only for whoever may look into the process
	open    func(n *node) vfs.Ops                      // with read: an open file that is no plain text
	stream  func(c *caller.Ctx) (vfs.Ops, linux.Errno) // an open file of another package
	write   func(x *about, b []byte) linux.Errno
	whole   bool // with write: only at the file's start
	link    func(x *about) (string, linux.Errno)
	jump    func(x *about) (vfs.Path, linux.Errno) // with link: where it really leads
	kids    []*entry                               // a directory's fixed names
	find    func(x *about, name string) (*entry, *about)
	list    func(x *about, emit func(name string, e *entry, x *about) bool)
	links   func(x *about) uint32 // of a directory: st_nlink, if it is not 2
}

// about is what a file is about, and who asks.
type about struct {
	c   *caller.Ctx
	p   *proc.Process
	t   *proc.Thread
	fd  int32
	n   string      // a name, for registered files
	dir *sysctl.Dir // for directories of /proc/sys
	at  int64       // the file position of a write
}

func (e *entry) kind() uint32 {
	switch {
	case e.link != nil:
		return linux.S_IFLNK
	case e.read != nil || e.write != nil || e.memory != nil || e.maps || e.mem || e.ctl != nil || e.stream != nil:
		return linux.S_IFREG
	}
	return linux.S_IFDIR
}

// node is a file that was looked up.
type node struct {
	vfs.BaseNode
	vfs.Inode
	e *entry // immutable
	x about  // immutable but for c, which is unused here
}

// jumpNode is a node that leads to a file directly.
type jumpNode struct{ node }

var fs = vfs.NewFileSystem("proc", linux.PROC_SUPER_MAGIC, vfs.FSNoCache)

// Type is procfs for mount(2).
var Type = vfs.FSType{Make: func(string) (*vfs.FileSystem, linux.Errno) { return fs, 0 }}

// Init makes the tree. It is not a literal because directories look into themselves.
func Init() {
	registeredDir.find, registeredDir.list = findRegistered, listRegistered
	mapFilesDir.find, mapFilesDir.list = findMapFile, listMapFiles
	sysDir.find, sysDir.list = findCtl, listCtl
	fillProcessDirs()
	fillRoot()
	register("hardtack/ledger", ledgerEntry)
	fs.BlockSize = 1024
	fs.Root = vfs.NewRoot(newNode(root, &about{}, 1))
	addSettings()
}

// addSettings adds what lies under /proc/sys and is not the network's.
func addSettings() {
	sysctl.Later("kernel", kernelFiles)
	sysctl.Later("kernel", ipcNumbers)
	sysctl.Later("kernel", keptKernel)
	sysctl.Later("vm", vmFiles)
	sysctl.Later("fs", fsFiles)
	sysctl.AddDir("fs/mqueue")
	sysctl.Later("user", userFiles)
}

// Mount mounts it on /proc.
func Mount(c *caller.Ctx, ctx *vfs.FSContext) linux.Errno {
	return vfs.KernelMount(c, ctx, fs, "proc", "/proc", linux.MS_NOSUID|linux.MS_NODEV|linux.MS_NOEXEC|linux.MS_RELATIME)
}

func newNode(e *entry, x *about, ino uint64) *vfs.Inode {
	var n *node
	var ops vfs.NodeOps
	if e.jump != nil {
		j := &jumpNode{}
		n, ops = &j.node, j
	} else {
		n = &node{}
		ops = n
	}
	n.e, n.x = e, *x
	n.x.c = nil
	v := vfs.NewNode{Mode: e.kind() | e.mode}
	if p := x.process(); p != nil {
		v.UID, v.GID = p.Owner(x.t, v.Mode == linux.S_IFDIR|0o555)
	}
	kept.apply(e, x, &v)
	if e.links != nil {
		v.Links = e.links(&n.x)
	}
	n.Init(fs, ops, &v)
	n.Ino = ino
	n.adoptAttrs(x.c)
	return &n.Inode
}

func (x *about) process() *proc.Process {
	if x.t != nil {
		return x.t.Process()
	}
	return x.p
}

// inoOf makes a number that a name keeps.
func inoOf(parent uint64, name string) uint64 {
	h := fnv.New64a()
	var b [8]byte
	for i := range b {
		b[i] = byte(parent >> (8 * i))
	}
	h.Write(b[:])
	h.Write([]byte(name))
	return h.Sum64()>>8 | 1<<40
}

// child finds a name in a directory.
func (n *node) child(c *caller.Ctx, name string) (*entry, *about) {
	x := n.x
	x.c = c
	for _, k := range n.e.kids {
		if k.name == name {
			return k, &x
		}
	}
	if n.e.find != nil {
		return n.e.find(&x, name)
	}
	return nil, nil
}

// Lookup finds a name.
func (n *node) Lookup(c *caller.Ctx, dir *vfs.Inode, name string) (*vfs.Inode, linux.Errno) {
	if !n.alive() {
		return nil, linux.ENOENT
	}
	e, x := n.child(c, name)
	if e == nil {
		return nil, linux.ENOENT
	}
	return newNode(e, x, inoOf(dir.Ino, name)), 0
}

// alive reports whether the process is still there, and the thread if it is about one.
func (n *node) alive() bool {
	return n.x.p == nil || !n.x.p.Reaped() && (n.x.t == nil || n.x.t.State() != proc.StateDead)
}

// ReadLink returns a link's text.
func (n *node) ReadLink(c *caller.Ctx, _ *vfs.Inode) (string, linux.Errno) {
	if n.e.link == nil {
		return "", linux.EINVAL
	}
	x := n.x
	x.c = c
	return n.e.link(&x)
}

// Jump goes where the link leads.
func (n *jumpNode) Jump(c *caller.Ctx, _ *vfs.Inode) (vfs.Path, linux.Errno) {
	x := n.x
	x.c = c
	return n.e.jump(&x)
}

// Open opens a text or a directory.
func (n *node) Open(c *caller.Ctx, _ vfs.Path, flags uint32) (vfs.Ops, linux.Errno) {
	if n.e.inside {
		x := n.x
		x.c = c
		if !x.mayLook(nil) {
			return nil, linux.EACCES
		}
	}
	switch e := n.e; {
	case e.noWrite && (flags&linux.O_ACCMODE == linux.O_WRONLY || flags&linux.O_ACCMODE == linux.O_RDWR):
		return nil, linux.EACCES
	case n.IsDir():
		return &dir{n: n}, 0
	case e.ctl != nil:
		return n.openCtl(c, flags)
	case e.mem:
		return n.openMem(c)
	case e.admin && !c.Cred().Has(creds.CapSysAdmin):
		return nil, linux.EPERM
	case e.stream != nil:
		return e.stream(c)
	case e.memory != nil && e.public:
		return &memoryText{n: n}, 0
	case e.rollup:
		x := n.x
		x.c = c
		if !x.mayLook(nil) {
			return nil, linux.EACCES
		}
	case e.memory != nil || e.maps:
		p, err := n.takeProgram(c)
		if err != 0 {
			return nil, err
		}
		if e.maps {
			return &mapsText{n: n, space: p.space}, 0
		}
		return &memoryText{n: n, taken: p}, 0
	}
	if n.e.mounts {
		return n.openMounts(c)
	}
	if n.e.open != nil {
		return n.e.open(n), 0
	}
	return &text{n: n}, 0
}

// dir is an open directory.
type dir struct {
	vfs.BaseOps
	n *node
}

// Read refuses.
func (*dir) Read(*caller.Ctx, *vfs.File, *uio.Vec, int64) (int, linux.Errno) { return 0, linux.EISDIR }

// Seek moves in the listing.
func (d *dir) Seek(_ *caller.Ctx, f *vfs.File, off int64, whence int) (int64, linux.Errno) {
	return vfs.SeekSized(f, off, whence, 0, vfs.SmallMax)
}

// DirOfProcess returns the process of /proc/PID, nil for other directories.
func (d *dir) DirOfProcess() *proc.Process {
	if d.n.e == processDir {
		return d.n.x.p
	}
	return nil
}

// ReadDir lists the fixed names, then those that come and go. Processes and
// descriptors have offsets of their own number, so that a listing goes on
// behind the last one that was taken.
func (d *dir) ReadDir(c *caller.Ctx, f *vfs.File, emit func(*vfs.Dirent) bool) linux.Errno {
	if !d.n.alive() {
		return linux.ENOENT
	}
	if !vfs.EmitDots(f, emit) {
		return 0
	}
	x := d.n.x
	x.c = c
	put := func(pos int64, name string, e *entry) bool {
		if f.Pos > pos {
			return true
		}
		if !emit(&vfs.Dirent{Ino: inoOf(d.n.Ino, name), Off: pos + 1, Type: uint8(e.kind() >> 12), Name: name}) {
			return false
		}
		f.Pos = pos + 1
		return true
	}
	const firstFixed, firstMoving, firstNumber = 2, 1 << 20, 1 << 21
	for i, k := range d.n.e.kids {
		if !put(firstFixed+int64(i), k.name, k) {
			return 0
		}
	}
	if d.n.e.list == nil {
		return 0
	}
	pos := int64(firstMoving)
	x.fd = int32(min(max(f.Pos-firstNumber, 0), math.MaxInt32))
	d.n.e.list(&x, func(name string, e *entry, _ *about) bool {
		if num, err := strconv.ParseUint(name, 10, 31); err == nil {
			pos = firstNumber + int64(num)
		} else {
			pos++
		}
		return put(pos, name, e)
	})
	return 0
}

// Registered files, by path: "hardtack/heap", "net/tcp".
var registered struct {
	mu    sync.RWMutex
	files map[string]*entry // guarded by mu
}

// Register adds a file that everybody may read.
func Register(path string, text func() []byte) {
	register(path, &entry{mode: 0o444, read: func(*about) ([]byte, linux.Errno) { return text(), 0 }})
}

// RegisterTable adds a file that everybody may read and that nobody opens to write.
func RegisterTable(path string, text func() []byte) {
	register(path, &entry{mode: 0o444, noWrite: true, read: func(*about) ([]byte, linux.Errno) { return text(), 0 }})
}

// RegisterTrigger adds a file that only who has CAP_SYS_ADMIN may write to.
func RegisterTrigger(path string, text func() []byte, write func(string) linux.Errno) {
	register(path, &entry{mode: 0o644,
		read: func(*about) ([]byte, linux.Errno) { return text(), 0 },
		write: func(x *about, b []byte) linux.Errno {
			if !x.c.Cred().Has(creds.CapSysAdmin) {
				return linux.EPERM
			}
			return write(strings.TrimRight(string(b), "\n\x00"))
		}})
}

// RegisterAdmin adds a file that only the machine's administrator may read: what
// it shows of the kernel would help to attack it, or making it takes long. It is
// made once for a reader, whatever its length. write may be nil.
func RegisterAdmin(path string, text func() []byte, write func(string) linux.Errno) {
	e := &entry{mode: 0o400, admin: true, ahead: math.MaxInt, read: func(*about) ([]byte, linux.Errno) { return text(), 0 }}
	if write != nil {
		e.mode = 0o600
		e.write = func(_ *about, b []byte) linux.Errno { return write(strings.TrimRight(string(b), "\n\x00")) }
	}
	register(path, e)
}

// RegisterStream adds a file of the machine's administrator that another package implements.
func RegisterStream(path string, open func(c *caller.Ctx) (vfs.Ops, linux.Errno)) {
	register(path, &entry{mode: 0o600, admin: true, stream: open})
}

func register(path string, e *entry) {
	registered.mu.Lock()
	defer registered.mu.Unlock()
	if registered.files == nil {
		registered.files = map[string]*entry{}
	}
	e.name = path[strings.LastIndexByte(path, '/')+1:]
	registered.files[path] = e
}

// findRegistered finds name in the registered directory x.n.
func findRegistered(x *about, name string) (*entry, *about) {
	path := name
	if x.n != "" {
		path = x.n + "/" + name
	}
	registered.mu.RLock()
	defer registered.mu.RUnlock()
	if e := registered.files[path]; e != nil {
		return e, &about{}
	}
	for p := range registered.files {
		if strings.HasPrefix(p, path+"/") {
			return registeredDir, &about{n: path}
		}
	}
	return nil, nil
}

// listRegistered lists the registered directory x.n in order.
func listRegistered(x *about, emit func(string, *entry, *about) bool) {
	for _, name := range registeredNames(x.n) {
		e, y := findRegistered(x, name)
		if e != nil && !emit(name, e, y) {
			return
		}
	}
}

// registeredDir is a directory of registered files. (Its functions refer to it.)
var registeredDir = &entry{mode: 0o555}
