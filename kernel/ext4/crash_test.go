package ext4

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"hardtack/abi/linux"
)

// Crash tests. A recorder keeps every write and flush that a workload of random
// operations sends to the disk. A crash state is what a disk may hold when the
// power goes: everything up to some flush, and of the writes after it any
// selection of 512-byte sectors, in any order. Each state is recovered by our mount,
// compared with a model of what must be there and what may be there, and checked by
// e2fsck.
//
// What the model says, for every name: the log of what the name led to over time.
// A state must show a prefix of the history of names: operations on names are
// journaled in order, so all of them up to some point are there, and none after.
// That point is at or behind the last operation that an fsync made durable. A
// file's content must be what a write or truncation after the last fsync may have
// left: each sector old or new.

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

// version is a file's content at some time.
type version struct {
	data    []byte
	exists  bool
	durable int // event number from which on this or a later version must be there
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
	return w.pick(func(_ string, f *modelFile) bool { return !f.dir && f.target == "" })
}
func (w *workload) anyDir() string {
	return w.pick(func(_ string, f *modelFile) bool { return f.dir })
}

func (w *workload) fresh() string {
	return fmt.Sprintf("%s/n%d%s", strings.TrimSuffix(w.anyDir(), "/"), w.rng.IntN(1000), strings.Repeat("x", w.rng.IntN(60)))
}

func split(path string) (dir, name string) {
	i := strings.LastIndexByte(path, '/')
	return path[:i+1], path[i+1:]
}

// step does one operation; names are remembered after those that change them.
func (w *workload) step() {
	t, fs := w.t, w.fs
	changed := true
	var subject *modelFile // whose own names change
	switch k := w.rng.IntN(100); {
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
		if _, err := fs.WriteAt(in, data, int64(off)); Errno(err) == linux.ENOSPC {
			must(t, fs.Unlink(w.file("/"), "none", in)) // never reached: the disk is large enough
		} else {
			must(t, err)
		}
		f.contents = append(f.contents, content{next, before, -1})
		changed = false
		if w.rng.IntN(3) == 0 {
			w.fsync(p)
		}
	case k < 56: // truncate, punch, preallocate
		p := w.anyFile()
		if p == "" {
			return
		}
		in, f := w.file(p), w.names[p]
		defer fs.Put(in)
		next, before := slices.Clone(f.data()), w.rec.count()
		off := w.rng.IntN(len(next) + 2000)
		switch w.rng.IntN(3) {
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
		p := w.pick(func(p string, f *modelFile) bool { return p != "/" && (!f.dir || w.empty(p)) })
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
		old := w.pick(func(p string, f *modelFile) bool { return p != "/" })
		if old == "" {
			return
		}
		to := w.fresh()
		if w.rng.IntN(2) == 0 {
			to = w.pick(func(p string, f *modelFile) bool { return p != "/" && !f.dir })
		}
		if to == "" || to == old || w.names[to] == w.names[old] || strings.HasPrefix(to, old+"/") || strings.HasPrefix(old, to+"/") {
			return
		}
		fd, on := split(old)
		td, nn := split(to)
		a, b := w.file(fd), w.file(td)
		defer fs.Put(a)
		defer fs.Put(b)
		err := fs.Rename(a, on, b, nn, 0)
		if e := Errno(err); e == linux.ENOTDIR && w.names[old].dir && w.names[to] != nil && !w.names[to].dir || e == linux.ENOSPC {
			return
		}
		if err != nil {
			t.Fatalf("rename %s %s: %v", old, to, err)
		}
		subject = w.names[old]
		moved := map[string]*modelFile{}
		for p, f := range w.names {
			if p == old || strings.HasPrefix(p, old+"/") {
				moved[to+p[len(old):]] = f
				delete(w.names, p)
			}
		}
		maps.Copy(w.names, moved)
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
	case k < 97: // fsync
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
		w.past = append(w.past, snapshot{maps.Clone(w.names), w.rec.count(), -1})
	}
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

// record runs a workload of n operations and returns it, with the disk as it was
// before the mount.
func record(t testing.TB, seed uint64, n, bs int) (*memDisk, *workload) {
	t.Helper()
	base := newMemDisk(12 << 20)
	must(t, Mkfs(base, MkfsOptions{BlockSize: bs, Zeroed: true, JournalBlocks: 1024, BytesPerInode: 8192}))
	w := &workload{t: t, rng: rand.New(rand.NewPCG(seed, 77)), rec: &recorder{memDisk: base.clone()},
		names: map[string]*modelFile{"/": {dir: true}, "/lost+found": {dir: true}}}
	delete(w.names, "/lost+found")
	fs, err := Mount(w.rec, Options{CacheBlocks: 64})
	must(t, err)
	w.fs = fs
	fs.j.fullAt = uint32(20 + w.rng.IntN(400)) // checkpoints often
	w.past = []snapshot{{maps.Clone(w.names), w.rec.count(), 0}}
	for range n {
		w.step()
	}
	return base, w
}

// crasher makes crash states of a recording, one after another.
type crasher struct {
	t    testing.TB
	rng  *rand.Rand
	disk *memDisk // all events before the last flush before at
	at   int      // events applied to disk
	w    *workload
	file string
	bad  int
}

func (c *crasher) apply(d *memDisk, e event) {
	if !e.flush {
		must(c.t, d.WriteAt([]Transfer{{e.off, e.data}}, false))
	}
}

// state makes a disk as it may be after a crash at event number n: everything
// before the last flush, and some sectors of what came after (whole writes only,
// unless torn). done is how many events the workload can have seen returning.
func (c *crasher) state(n int, torn bool) (d *memDisk, done int) {
	last := c.at
	for i := c.at; i < n; i++ {
		if c.w.rec.events[i].flush {
			last = i
		}
	}
	for ; c.at < last; c.at++ {
		c.apply(c.disk, c.w.rec.events[c.at])
	}
	d, done = c.disk.clone(), n
	loose := slices.Clone(c.w.rec.events[c.at:n])
	var fua []event // durable at once
	for i, e := range loose {
		switch {
		case e.fua && i == len(loose)-1 && c.rng.IntN(2) == 0:
			done = n - 1 // still under way
		case e.fua:
			fua = append(fua, e)
		}
	}
	kind := c.rng.IntN(4)
	if !torn && kind != 0 {
		kind = 2
	}
	switch kind {
	case 0: // all
		for _, e := range loose {
			c.apply(d, e)
		}
		return d, done
	case 1: // a prefix, the last write torn
		k := c.rng.IntN(len(loose) + 1)
		for i, e := range loose[:k] {
			if i == k-1 {
				c.tear(d, e, 2)
			} else {
				c.apply(d, e)
			}
		}
	case 2: // whole writes, any of them in any order
		c.rng.Shuffle(len(loose), func(i, j int) { loose[i], loose[j] = loose[j], loose[i] })
		for _, e := range loose[:c.rng.IntN(len(loose)+1)] {
			c.apply(d, e)
		}
	case 3: // sectors
		odds := 1 + c.rng.IntN(4)
		for _, e := range loose {
			c.tear(d, e, odds)
		}
	}
	for _, e := range fua {
		c.apply(d, e)
	}
	return d, done
}

// again lets the power go during the recovery of a state, too.
func (c *crasher) again(d *memDisk) *memDisk {
	rec := &recorder{memDisk: d.clone()}
	if _, err := Mount(rec, Options{}); err != nil || len(rec.events) == 0 {
		return d // check will say so
	}
	x := &crasher{t: c.t, rng: c.rng, disk: d, w: &workload{rec: rec}}
	d, _ = x.state(1+c.rng.IntN(len(rec.events)), true)
	return d
}

// tear writes one in odds of an event's sectors.
func (c *crasher) tear(d *memDisk, e event, odds int) {
	for i := 0; i+512 <= len(e.data); i += 512 {
		if c.rng.IntN(odds) == 0 {
			c.apply(d, event{off: e.off + int64(i), data: e.data[i : i+512]})
		}
	}
}

// check recovers a state and compares it.
func (c *crasher) check(n, seen int, d *memDisk) error {
	fs, err := Mount(d, Options{})
	if err != nil {
		return fmt.Errorf("mount: %w", err)
	}
	got := map[string]found{}
	root, err := fs.Root()
	if err != nil {
		return err
	}
	if err := walkTree(fs, root, "/", got); err != nil {
		return fmt.Errorf("reading: %w", err)
	}
	fs.Put(root)
	if err := fs.Unmount(); err != nil {
		return fmt.Errorf("unmount: %w", err)
	}
	delete(got, "/lost+found")
	if err := c.compare(n, seen, got); err != nil {
		return err
	}
	d.save(c.t, c.file)
	if out := e2fsck(c.t, c.file); out != "" {
		return errors.New(out)
	}
	if p, err := Check(d, func(p string) { c.t.Log(p) }); err != nil || p != 0 {
		return fmt.Errorf("our checker: %d problems, %v", p, err)
	}
	return nil
}

type found struct {
	dir    bool
	target string
	data   []byte
}

func walkTree(fs *FS, dir *Inode, path string, out map[string]found) error {
	out[path] = found{dir: true}
	var list []Dirent
	if err := fs.ReadDir(dir, 0, func(d Dirent) bool { list = append(list, d); return true }); err != nil {
		return err
	}
	for _, d := range list {
		if d.Name == "." || d.Name == ".." {
			continue
		}
		p := strings.TrimSuffix(path, "/") + "/" + d.Name
		in, err := fs.Get(d.Ino)
		if err != nil {
			return fmt.Errorf("%s: %w", p, err)
		}
		switch d.Type {
		case linux.DT_DIR:
			err = walkTree(fs, in, p, out)
		case linux.DT_LNK:
			var s string
			s, err = fs.Readlink(in)
			out[p] = found{target: s}
		default:
			data := make([]byte, in.Size())
			_, err = fs.ReadAt(in, data, 0)
			out[p] = found{data: data}
		}
		fs.Put(in)
		if err != nil {
			return fmt.Errorf("%s: %w", p, err)
		}
	}
	return nil
}

// compare finds the point of the history that a state shows, and checks contents.
func (c *crasher) compare(n, seen int, got map[string]found) error {
	first := 0 // the last snapshot that had to be durable
	for i, s := range c.w.past {
		if s.durable >= 0 && s.durable <= seen {
			first = i
		}
	}
	var why error
	for i := len(c.w.past) - 1; i >= first; i-- {
		err := sameNames(c.w.past[i].names, got)
		if err == nil {
			err = c.contents(n, seen, c.w.past[i].names, got)
		}
		if err == nil {
			return nil
		}
		if why == nil || !strings.HasPrefix(err.Error(), "names") {
			why = err
		}
	}
	for i, s := range c.w.past {
		if sameNames(s.names, got) == nil {
			why = fmt.Errorf("%w; the names are those of point %d", why, i)
			break
		}
	}
	return fmt.Errorf("no point of the history from %d to %d fits: %w", first, len(c.w.past)-1, why)
}

func sameNames(want map[string]*modelFile, got map[string]found) error {
	for p, f := range want {
		g, ok := got[p]
		if !ok || g.dir != f.dir || g.target != f.target {
			return fmt.Errorf("names: %s", p)
		}
	}
	for p := range got {
		if want[p] == nil {
			return fmt.Errorf("names: %s should not be there", p)
		}
	}
	return nil
}

// contents checks that each file's bytes come from versions that the crash may
// have left: from the last that was synced on to the last that had begun.
func (c *crasher) contents(n, seen int, want map[string]*modelFile, got map[string]found) error {
	for p, f := range want {
		if f.dir || f.target != "" {
			continue
		}
		lo, hi := 0, 0
		for i, v := range f.contents {
			if v.synced >= 0 && v.synced <= seen {
				lo = i
			}
			if v.before <= n {
				hi = i
			}
		}
		if err := mixed(f.contents[lo:hi+1], got[p].data); err != nil {
			return fmt.Errorf("%s (%d versions from %d): %w", p, hi-lo+1, lo, err)
		}
	}
	return nil
}

// mixed checks that every byte of data is some version's at that place (or zero
// where a version is shorter), and its length lies between the versions'.
func mixed(versions []content, data []byte) error {
	shortest, longest := len(versions[0].data), 0
	for _, v := range versions {
		shortest, longest = min(shortest, len(v.data)), max(longest, len(v.data))
	}
	if len(data) < shortest || len(data) > longest {
		return fmt.Errorf("%d bytes long, not %d to %d", len(data), shortest, longest)
	}
	for i, b := range data {
		ok := false
		for _, v := range versions {
			if i < len(v.data) && v.data[i] == b || i >= len(v.data) && b == 0 {
				ok = true
				break
			}
		}
		if !ok {
			return fmt.Errorf("byte %d is %#x, of no version", i, b)
		}
	}
	return nil
}

// TestCrash makes 500 states, or HARDTACK_CRASH_STATES of them.
func TestCrash(t *testing.T) {
	tool(t, "e2fsck")
	states := 500
	if s := os.Getenv("HARDTACK_CRASH_STATES"); s != "" {
		states, _ = strconv.Atoi(s)
	} else if testing.Short() {
		states = 50
	}
	seed := uint64(1)
	if s := os.Getenv("HARDTACK_CRASH_SEED"); s != "" {
		seed, _ = strconv.ParseUint(s, 10, 64)
	}
	const perRun = 50
	for done := 0; done < states; seed++ {
		bs := []int{1024, 4096, 2048}[seed%3]
		base, w := record(t, seed, 250, bs)
		c := &crasher{t: t, rng: rand.New(rand.NewPCG(seed, 3)), disk: base, w: w, file: filepath.Join(scratch(t), "disk")}
		events := len(w.rec.events)
		points := []int{}
		for range min(perRun, states-done) {
			points = append(points, 1+c.rng.IntN(events))
		}
		slices.Sort(points)
		for _, n := range points {
			d, seen := c.state(n, true)
			if c.rng.IntN(6) == 0 {
				d = c.again(d)
			}
			before := d.clone()
			if err := c.check(n, seen, d); err != nil {
				before.save(t, filepath.Join(os.TempDir(), "ext4-crash.img"))
				t.Fatalf("seed %d, blocks of %d, crash at event %d of %d: %v", seed, bs, n, events, err)
			}
			done++
		}
		w.close()
		if err := w.fs.Unmount(); err != nil {
			t.Fatal(err)
		}
		wantClean(t, w.rec.memDisk)
	}
}

// TestCrashLinuxTools lets e2fsck replay our log: it must find a clean disk after.
func TestCrashLinuxTools(t *testing.T) {
	e := tool(t, "e2fsck")
	base, w := record(t, 99, 300, 1024)
	c := &crasher{t: t, rng: rand.New(rand.NewPCG(9, 9)), disk: base, w: w, file: filepath.Join(scratch(t), "disk")}
	events := len(w.rec.events)
	for i := 1; i <= 20; i++ {
		n := events * i / 20
		d, seen := c.state(n, false)
		d.save(t, c.file)
		out, err := exec.Command(e, "-fp", c.file).CombinedOutput()
		var exit *exec.ExitError
		if err != nil && (!errors.As(err, &exit) || exit.ExitCode() > 1) {
			t.Fatalf("event %d: e2fsck -fp: %v\n%s", n, err, out)
		}
		if out := e2fsck(t, c.file); out != "" {
			t.Fatalf("event %d: after e2fsck -fp: %s", n, out)
		}
		d = loadDisk(t, c.file)
		if err := c.check(n, seen, d); err != nil {
			t.Fatalf("event %d: %v", n, err)
		}
	}
}
