package ext4

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"hardtack/abi/linux"
)

// event is one thing that reached the disk.
type event struct {
	flush bool
	off   int64
	data  []byte
	fua   bool
}

// recorder is a disk that remembers.
type recorder struct {
	*memDisk
	calls  atomic.Int64
	mu     sync.Mutex
	events []event // guarded by mu
}

func (r *recorder) WriteAt(batch []Transfer, fua bool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, t := range batch {
		r.events = append(r.events, event{off: t.Off, data: bytes.Clone(t.Buf), fua: fua})
	}
	return r.memDisk.WriteAt(batch, false)
}

func (r *recorder) Flush() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, event{flush: true})
	return nil
}

func (r *recorder) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.events)
}

// snapshot is the whole tree after one operation: path to content ("/" at the end:
// a directory). Content is the file's, by identity.
type snapshot struct {
	names   map[string]*modelFile
	after   int // events when the operation had returned
	durable int // events when an fsync or sync made it durable; -1: never
}

func (s *snapshot) setDurable(now int) {
	if s.durable < 0 {
		s.durable = now
	}
}

// modelFile is a file in the model; contents are in the order of their making.
type modelFile struct {
	dir      bool
	white    bool   // a whiteout, which has no content
	target   string // of a symbolic link
	contents []content
	named    int // the snapshot after the last change of its names
}

// content is a file's bytes after a change.
type content struct {
	data   []byte
	before int // events when the change began
	synced int // events when an fsync of it returned; -1: never
}

func (v *content) setSynced(now int) {
	if v.synced < 0 {
		v.synced = now
	}
}

func (f *modelFile) data() []byte { return f.contents[len(f.contents)-1].data }

// workload runs random operations on a file system and on the model.
type workload struct {
	t     testing.TB
	rng   *rand.Rand
	rec   *recorder
	fs    *FS
	root  string   // of its names: "/", or a directory of its own
	mine  string   // what all its names begin with; "" if nobody else works
	also  []string // directories in which others have names, too, and nobody may remove
	names map[string]*modelFile
	past  []snapshot
	tag   byte
	open  []*Inode
}

func (w *workload) file(path string) *Inode {
	w.t.Helper()
	in, err := w.fs.resolve(path)
	if err != nil {
		w.t.Fatalf("%s: %v", path, err)
	}
	return in
}

// resolve walks a path such as /a/b.
func (fs *FS) resolve(path string) (*Inode, error) {
	in, err := fs.Root()
	if err != nil {
		return nil, err
	}
	for _, name := range strings.Split(strings.Trim(path, "/"), "/") {
		if name == "" {
			continue
		}
		ino, err := fs.Lookup(in, name)
		fs.Put(in)
		if err != nil {
			return nil, err
		}
		if ino == 0 {
			return nil, linux.ENOENT
		}
		if in, err = fs.Get(ino); err != nil {
			return nil, err
		}
	}
	return in, nil
}

// pick returns a random path of the model that ok accepts, "" if there is none.
func (w *workload) pick(ok func(path string, f *modelFile) bool) string {
	paths := slices.DeleteFunc(slices.Sorted(maps.Keys(w.names)), func(p string) bool { return !ok(p, w.names[p]) })
	if len(paths) == 0 {
		return ""
	}
	return paths[w.rng.IntN(len(paths))]
}

func (w *workload) anyFile() string {
	return w.pick(func(_ string, f *modelFile) bool { return !f.dir && !f.white && f.target == "" })
}
func (w *workload) anyDir() string {
	return w.pick(func(_ string, f *modelFile) bool { return f.dir })
}

func (w *workload) fresh() string {
	return fmt.Sprintf("%s/%sn%d%s", strings.TrimSuffix(w.anyDir(), "/"), w.mine, w.rng.IntN(1000), strings.Repeat("x", w.rng.IntN(60)))
}

func split(path string) (dir, name string) {
	i := strings.LastIndexByte(path, '/')
	return path[:i+1], path[i+1:]
}

// step does one operation; names are remembered after those that change them.
func (w *workload) step() {
	t, fs := w.t, w.fs
	changed := true
	var subject, other *modelFile // whose own names change
	switch k := w.rng.IntN(120); {
	case k < 22: // create
		p := w.fresh()
		if w.names[p] != nil {
			return
		}
		dir, name := split(p)
		d := w.file(dir)
		n := NewInode{Mode: linux.S_IFREG | 0o644}
		f := &modelFile{contents: []content{{before: w.rec.count(), synced: -1}}}
		switch w.rng.IntN(8) {
		case 0, 1:
			n.Mode, f.dir = linux.S_IFDIR|0o755, true
		case 2:
			n.Mode = linux.S_IFLNK | 0o777
			f.target = strings.Repeat("l", 1+w.rng.IntN(100))
			n.Target = f.target
		}
		in, err := fs.Create(d, name, n)
		fs.Put(d)
		if Errno(err) == linux.ENOSPC {
			return
		}
		must(t, err)
		must(t, fs.Put(in))
		w.names[p], subject = f, f
	case k < 50: // write
		p := w.anyFile()
		if p == "" {
			return
		}
		in, f := w.file(p), w.names[p]
		defer fs.Put(in)
		old := f.data()
		off := w.rng.IntN(len(old) + 3000)
		if w.rng.IntN(2) == 0 {
			off = len(old)
		}
		w.tag++
		data := bytes.Repeat([]byte{max(w.tag, 1)}, 1+w.rng.IntN(9000))
		next := slices.Clone(old)
		if len(next) < off+len(data) {
			next = append(next, make([]byte, off+len(data)-len(next))...)
		}
		copy(next[off:], data)
		before := w.rec.count()
		if w.rng.IntN(2) == 0 {
			_, err := fs.WriteAt(in, data, int64(off))
			must(t, err)
		} else {
			w.writePages(in, next, off, off+len(data))
		}
		f.contents = append(f.contents, content{next, before, -1})
		changed = false
		if w.rng.IntN(3) == 0 {
			w.fsync(p)
		}
	case k < 56: // truncate, punch, preallocate, collapse, insert
		p := w.anyFile()
		if p == "" {
			return
		}
		in, f := w.file(p), w.names[p]
		defer fs.Put(in)
		next, before := slices.Clone(f.data()), w.rec.count()
		off := w.rng.IntN(len(next) + 2000)
		bs := int(fs.s.blockSize)
		switch w.rng.IntN(4) {
		case 3:
			off = off / bs * bs
			n := (1 + w.rng.IntN(4)) * bs
			switch {
			case off+n < len(next) && w.rng.IntN(2) == 0:
				must(t, fs.Fallocate(in, linux.FALLOC_FL_COLLAPSE_RANGE, int64(off), int64(n)))
				next = slices.Delete(next, off, off+n)
			case off < len(next):
				must(t, fs.Fallocate(in, linux.FALLOC_FL_INSERT_RANGE, int64(off), int64(n)))
				next = slices.Insert(next, off, make([]byte, n)...)
			}
		case 0:
			must(t, fs.Truncate(in, int64(off)))
			next = append(next, make([]byte, max(0, off-len(next)))...)[:off]
		case 1:
			n := 1 + w.rng.IntN(5000)
			must(t, fs.Fallocate(in, linux.FALLOC_FL_PUNCH_HOLE|linux.FALLOC_FL_KEEP_SIZE, int64(off), int64(n)))
			if off < len(next) {
				clear(next[off:min(off+n, len(next))])
			}
		case 2:
			n := 1 + w.rng.IntN(9000)
			must(t, fs.Fallocate(in, 0, int64(off), int64(n)))
			next = append(next, make([]byte, max(0, off+n-len(next)))...)
		}
		f.contents = append(f.contents, content{next, before, -1})
		changed = false
	case k < 66: // unlink
		p := w.pick(func(p string, f *modelFile) bool { return !w.fixed(p) && (!f.dir || w.empty(p)) })
		if p == "" {
			return
		}
		dir, name := split(p)
		d, in := w.file(dir), w.file(p)
		must(t, fs.Unlink(d, name, in))
		subject = w.names[p]
		delete(w.names, p)
		must(t, fs.Put(d))
		w.open = append(w.open, in) // used for a while after its name is gone
		if w.rng.IntN(3) == 0 {
			w.close()
		}
	case k < 80: // rename, over something or not
		old := w.anyName()
		if old == "" {
			return
		}
		to := w.fresh()
		if w.rng.IntN(2) == 0 {
			to = w.pick(func(p string, f *modelFile) bool { return !w.fixed(p) && !f.dir })
		}
		if to == "" || to == old || w.names[to] == w.names[old] || strings.HasPrefix(to, old+"/") || strings.HasPrefix(old, to+"/") {
			return
		}
		fd, on := split(old)
		td, nn := split(to)
		a, b := w.file(fd), w.file(td)
		defer fs.Put(a)
		defer fs.Put(b)
		flags := uint32(0)
		switch w.rng.IntN(4) {
		case 0:
			if flags = linux.RENAME_NOREPLACE; w.names[to] != nil {
				if err := fs.Rename(a, on, b, nn, flags); Errno(err) != linux.EEXIST {
					t.Fatalf("rename %s %s, not to replace: %v", old, to, err)
				}
				return
			}
		case 1:
			flags = linux.RENAME_WHITEOUT
		}
		err := fs.Rename(a, on, b, nn, flags)
		if e := Errno(err); e == linux.ENOTDIR && w.names[old].dir && w.names[to] != nil && !w.names[to].dir || e == linux.ENOSPC {
			return
		}
		if err != nil {
			t.Fatalf("rename %s %s: %v", old, to, err)
		}
		subject = w.names[old]
		moved := w.takeTree(old, to)
		maps.Copy(w.names, moved)
		if flags == linux.RENAME_WHITEOUT {
			other = &modelFile{white: true, contents: []content{{synced: -1}}}
			w.names[old] = other
		}
	case k < 84: // link
		p := w.anyFile()
		to := w.fresh()
		if p == "" || w.names[to] != nil {
			return
		}
		dir, name := split(to)
		d, in := w.file(dir), w.file(p)
		must(t, fs.Link(d, name, in))
		must(t, fs.Put(d))
		must(t, fs.Put(in))
		w.names[to], subject = w.names[p], w.names[p]
	case k < 88: // an attribute
		p := w.anyFile()
		if p == "" {
			return
		}
		in := w.file(p)
		must(t, fs.Setxattr(in, "user.a", bytes.Repeat([]byte{'v'}, w.rng.IntN(300)), 0))
		must(t, fs.Put(in))
		changed = false
	case k < 95: // exchange two names
		a, b := w.anyName(), w.anyName()
		if a == "" || b == "" || w.names[a] == w.names[b] || strings.HasPrefix(a, b+"/") || strings.HasPrefix(b, a+"/") {
			return
		}
		ad, an := split(a)
		bd, bn := split(b)
		x, y := w.file(ad), w.file(bd)
		defer fs.Put(x)
		defer fs.Put(y)
		must(t, fs.Rename(x, an, y, bn, linux.RENAME_EXCHANGE))
		subject, other = w.names[a], w.names[b]
		atA, atB := w.takeTree(b, a), w.takeTree(a, b)
		maps.Copy(w.names, atA)
		maps.Copy(w.names, atB)
	case k < 101: // a file without a name, which mostly gets one
		p := w.fresh()
		if w.names[p] != nil {
			return
		}
		dir, name := split(p)
		d := w.file(dir)
		defer fs.Put(d)
		before := w.rec.count()
		in, err := fs.Tmpfile(d, NewInode{Mode: linux.S_IFREG | 0o600})
		must(t, err)
		w.tag++
		data := bytes.Repeat([]byte{max(w.tag, 1)}, w.rng.IntN(6000))
		_, err = fs.WriteAt(in, data, 0)
		must(t, err)
		synced := -1
		if w.rng.IntN(2) == 0 {
			must(t, fs.Fsync(in, false))
			synced = w.rec.count()
		}
		if w.rng.IntN(4) == 0 {
			w.open = append(w.open, in)
			return
		}
		must(t, fs.Link(d, name, in))
		must(t, fs.Put(in))
		// Written before it had a name: no crash shows the name with less.
		subject = &modelFile{contents: []content{{data, before, synced}}}
		w.names[p] = subject
	case k < 117: // fsync
		p := w.anyFile()
		if p == "" {
			return
		}
		w.fsync(p)
		return
	default:
		must(t, fs.Sync())
		now := w.rec.count()
		w.past[len(w.past)-1].setDurable(now)
		for _, f := range w.names {
			if len(f.contents) > 0 {
				f.contents[len(f.contents)-1].setSynced(now)
			}
		}
		return
	}
	if changed {
		subject.named = len(w.past)
		if other != nil {
			other.named = len(w.past)
		}
		w.past = append(w.past, snapshot{maps.Clone(w.names), w.rec.count(), -1})
	}
}

func (w *workload) anyName() string {
	return w.pick(func(p string, f *modelFile) bool { return !w.fixed(p) })
}

// fixed says whether a name stays: the workload's directories.
func (w *workload) fixed(path string) bool { return path == w.root || slices.Contains(w.also, path) }

// has says whether a name is the workload's to know about.
func (w *workload) has(path string) bool {
	if w.mine == "" || w.fixed(path) || strings.HasPrefix(path, w.root+"/") {
		return true
	}
	return slices.ContainsFunc(w.also, func(dir string) bool { return strings.HasPrefix(path, dir+"/"+w.mine) })
}

// takeTree removes old and what is below it from the model and returns it as it would
// be at path to.
func (w *workload) takeTree(old, to string) map[string]*modelFile {
	moved := map[string]*modelFile{}
	for p, f := range w.names {
		if p == old || strings.HasPrefix(p, old+"/") {
			moved[to+p[len(old):]] = f
			delete(w.names, p)
		}
	}
	return moved
}

// writePages writes bytes from … to-1 of a file's next content as a page cache does:
// space set aside first, whole blocks, zeros behind the end.
func (w *workload) writePages(in *Inode, next []byte, from, to int) {
	bs := w.fs.BlockSize()
	first, last := from/bs, (to-1)/bs
	blocks := int64(last - first + 1)
	must(w.t, w.fs.Reserve(blocks))
	var pages [][]byte
	for i := first; i <= last; i++ {
		p := make([]byte, bs)
		copy(p, next[i*bs:])
		pages = append(pages, p)
	}
	must(w.t, w.fs.WritePages(in, &Out{Pages: pages, Off: int64(first * bs), Size: int64(len(next)), Reserved: blocks}))
}

func (w *workload) close() {
	for _, in := range w.open {
		must(w.t, w.fs.Put(in))
	}
	w.open = nil
}

func (w *workload) fsync(path string) {
	in, f := w.file(path), w.names[path]
	must(w.t, w.fs.Fsync(in, w.rng.IntN(2) == 0))
	must(w.t, w.fs.Put(in))
	now := w.rec.count()
	f.contents[len(f.contents)-1].setSynced(now)
	// Its names came with it, and all that happened to names before.
	w.past[f.named].setDurable(now)
}

func (w *workload) empty(dir string) bool {
	for p := range w.names {
		if strings.HasPrefix(p, dir+"/") {
			return false
		}
	}
	return true
}

// record runs workloads of n operations each at once and returns them, with the disk
// as it was before the mount. A single one has the whole tree, several have a
// directory each and others together, in which each knows its names by how they begin.
func record(t testing.TB, seed uint64, n, bs, workers int) (*memDisk, []*workload) {
	t.Helper()
	base := newMemDisk(12 << 20)
	must(t, Mkfs(base, MkfsOptions{BlockSize: bs, Zeroed: true, JournalBlocks: 1024, BytesPerInode: 8192}))
	var also []string
	if workers > 1 {
		also = []string{"/all", "/all/below"}
		fs := mount(t, base)
		for i := range workers {
			must(t, fs.Put(create(t, fs, fmt.Sprint("/w", i), NewInode{Mode: linux.S_IFDIR | 0o755})))
		}
		for _, path := range also {
			must(t, fs.Put(create(t, fs, path, NewInode{Mode: linux.S_IFDIR | 0o755})))
		}
		must(t, fs.Unmount())
	}
	base.damaged = true // crashes are made of it
	rec := &recorder{memDisk: base.clone()}
	rng := rand.New(rand.NewPCG(seed, 77))
	o := Options{CacheBlocks: 64, Processors: 2}
	var background sync.WaitGroup
	if workers > 1 {
		o.Background = func(do func()) { background.Go(do) }
		o.Processor = func() int { return int(rec.calls.Add(1) % 2) }
	}
	fs := mountWith(t, rec, o)
	fs.j.fullAt = uint32(20 + rng.IntN(400)) // checkpoints often
	var all []*workload
	for i := range workers {
		w := &workload{t: t, rng: rand.New(rand.NewPCG(seed, uint64(78+i))), rec: rec, fs: fs, root: "/"}
		if workers > 1 {
			w.root, w.mine, w.also = fmt.Sprint("/w", i), fmt.Sprintf("w%d-", i), also
		}
		w.names = map[string]*modelFile{w.root: {dir: true}}
		for _, path := range w.also {
			w.names[path] = &modelFile{dir: true}
		}
		w.past = []snapshot{{maps.Clone(w.names), rec.count(), 0}}
		all = append(all, w)
	}
	var wg sync.WaitGroup
	for _, w := range all {
		wg.Go(func() {
			for range n {
				w.step()
			}
		})
	}
	wg.Wait()
	background.Wait()
	return base, all
}
