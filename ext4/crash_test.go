package ext4

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
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

// crasher makes crash states of a recording, one after another.
type crasher struct {
	t    testing.TB
	rng  *rand.Rand
	disk *memDisk // all events before the last flush before at
	at   int      // events applied to disk
	rec  *recorder
	all  []*workload
	file string
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
		if c.rec.events[i].flush {
			last = i
		}
	}
	for ; c.at < last; c.at++ {
		c.apply(c.disk, c.rec.events[c.at])
	}
	d, done = c.disk.clone(), n
	loose := slices.Clone(c.rec.events[c.at:n])
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
	x := &crasher{t: c.t, rng: c.rng, disk: d, rec: rec}
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
	for p := range got {
		if p != "/" && !slices.ContainsFunc(c.all, func(w *workload) bool { return w.has(p) }) {
			return fmt.Errorf("%s is nobody's", p)
		}
	}
	for _, w := range c.all {
		if err := w.compare(n, seen, w.below(got)); err != nil {
			return fmt.Errorf("below %s: %w", w.root, err)
		}
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

// below is the part of a tree that is the workload's.
func (w *workload) below(tree map[string]found) map[string]found {
	mine := map[string]found{}
	for p, f := range tree {
		if w.has(p) {
			mine[p] = f
		}
	}
	return mine
}

// compare finds the point of the history that a state shows, and checks contents.
func (w *workload) compare(n, seen int, got map[string]found) error {
	first := 0 // the last snapshot that had to be durable
	for i, s := range w.past {
		if s.durable >= 0 && s.durable <= seen {
			first = i
		}
	}
	var why error
	for i := len(w.past) - 1; i >= first; i-- {
		err := sameNames(w.past[i].names, got)
		if err == nil {
			err = contents(n, seen, w.past[i].names, got)
		}
		if err == nil {
			return nil
		}
		if why == nil || !strings.HasPrefix(err.Error(), "names") {
			why = err
		}
	}
	for i, s := range w.past {
		if sameNames(s.names, got) == nil {
			why = fmt.Errorf("%w; the names are those of point %d", why, i)
			break
		}
	}
	return fmt.Errorf("no point of the history from %d to %d fits: %w", first, len(w.past)-1, why)
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
func contents(n, seen int, want map[string]*modelFile, got map[string]found) error {
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
// where a version is shorter), and its length is between the versions'.
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
		workers := []int{3, 1, 5, 1}[seed%4] // several at once: their order is another in each run
		base, all := record(t, seed, 250/workers, bs, workers)
		if t.Failed() {
			t.FailNow()
		}
		rec, fs := all[0].rec, all[0].fs
		c := &crasher{t: t, rng: rand.New(rand.NewPCG(seed, 3)), disk: base, rec: rec, all: all, file: filepath.Join(scratch(t), "disk")}
		events := rec.count()
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
		for _, w := range all {
			w.close()
		}
		if err := fs.Unmount(); err != nil {
			t.Fatal(err)
		}
		wantClean(t, rec.memDisk)
	}
}

// TestCrashLinuxTools lets e2fsck replay our log: it must find a clean disk after.
func TestCrashLinuxTools(t *testing.T) {
	e := tool(t, "e2fsck")
	base, all := record(t, 99, 300, 1024, 1)
	c := &crasher{t: t, rng: rand.New(rand.NewPCG(9, 9)), disk: base, rec: all[0].rec, all: all, file: filepath.Join(scratch(t), "disk")}
	events := c.rec.count()
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
