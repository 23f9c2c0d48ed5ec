package storagebench

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	osbench "hardtack/bench/os"
	"hardtack/ext4"
)

// Config says what is measured.
type Config struct {
	osbench.Bench
	Operations int      // counted in a repetition
	Names      int      // of the large directory
	Millis     int      // of a timed row
	Messages   int      // of CMailbench where instructions are counted, a client
	Entries    int      // of a LevelDB suite
	Variants   []string // of the LevelDB suites, by name; none: all
	dir        string
}

// Figures are row → system → one figure a boot. A row's name has the driver or the
// place before it where there are several: "nvme/randread1".
type Figures map[string]osbench.Times

// diskSize of each boot's new file system, which has room for 131,072 files.
const diskSize = 1 << 30

// Prepare builds the guest's programs.
func (c *Config) Prepare() (osbench.Tree, error) {
	dir, err := os.MkdirTemp(c.Dirs.Cache, "storage")
	if err != nil {
		return nil, err
	}
	c.dir = dir
	t := osbench.Tree{}
	src := filepath.Join(c.Dirs.Repo, "bench", "storage", "guest")
	for _, name := range []string{"storage", "cmail"} {
		cc := exec.Command("gcc", "-static", "-O2", "-Wall", "-s", "-o", filepath.Join(dir, name), filepath.Join(src, name+".c"))
		if out, err := cc.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("gcc: %w\n%s", err, out)
		}
	}
	build := exec.Command("go", "build", "-o", filepath.Join(dir, "leveldb"), ".")
	build.Dir = filepath.Join(c.Dirs.Repo, "bench", "peers", "leveldb")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("go build bench/peers/leveldb: %w\n%s", err, out)
	}
	for _, name := range []string{"storage", "cmail", "leveldb"} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return nil, err
		}
		t.Add("bench/"+name, 0o755, data)
	}
	return t, nil
}

// Close removes what Prepare and the boots left.
func (c *Config) Close() { os.RemoveAll(c.dir) }

// newDisk makes a file system for one boot, the same for each system.
func (c *Config) newDisk() (string, error) {
	name := filepath.Join(c.dir, "disk.img")
	f, err := os.Create(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	if err := f.Truncate(diskSize); err != nil {
		return "", err
	}
	if err := ext4.Mkfs(ext4.NewFileDevice(f, diskSize), ext4.MkfsOptions{Zeroed: true, BytesPerInode: 8192}); err != nil {
		return "", err
	}
	return name, nil
}

// device is where the guest finds its disk.
func device(driver string) string {
	return map[string]string{"virtio": "/dev/vda", "nvme": "/dev/nvme0n1", "ahci": "/dev/sda"}[driver]
}

// job is one boot.
type job struct {
	what    string // for the log
	command string // lines of init
	driver  string // "" without a disk
	prefix  string // of its rows
	counts  bool
	cpus    int
	memory  string // "" is 768M
	limit   time.Duration
}

// run boots a system for a job and adds its rows to f. What a system cannot do is
// logged, and leaves its column empty.
func (c *Config) run(f Figures, programs osbench.Tree, system osbench.OS, j job) error {
	root, err := osbench.Programs(c.Dirs, j.command)
	if err != nil {
		return err
	}
	root.Merge(programs)
	b := osbench.Boot{OS: system, Root: root, CPUs: max(j.cpus, 1), Memory: cmp.Or(j.memory, "768M"), Machine: "q35", ICount: j.counts, Timeout: j.limit}
	if j.driver != "" {
		if b.Disk, err = c.newDisk(); err != nil {
			return err
		}
		b.Driver = j.driver
	}
	c.Log("%v: %s", system, j.what)
	m, err := b.Start(c.Dirs, c.Linux)
	if err != nil {
		return err
	}
	results, err := m.Wait()
	if err != nil {
		c.Log("%v, %s: %v", system, j.what, err)
	}
	rows := 0
	for _, r := range results {
		if r.Name == "boot" {
			continue
		}
		rows++
		name := j.prefix + r.Name
		if f[name] == nil {
			f[name] = osbench.Times{}
		}
		add(f[name], "median", system, r.Median)
		add(f[name], "minimum", system, r.Minimum)
	}
	if rows == 0 {
		c.Log("%v, %s: it measured nothing:\n%s", system, j.what, m.Output())
	}
	return nil
}

func add(t osbench.Times, name string, system osbench.OS, figure float64) {
	if t[name] == nil {
		t[name] = map[osbench.OS][]float64{}
	}
	t[name][system] = append(t[name][system], figure)
}

// each runs a job on every system in turn, reps times.
func (c *Config) each(f Figures, programs osbench.Tree, reps int, j job) error {
	for range reps {
		for _, system := range c.Systems {
			if err := c.run(f, programs, system, j); err != nil {
				return err
			}
		}
	}
	return nil
}

// hostRow and a part's name are the row that says how much more two threads of the
// host did than one, before or after the part was timed; it stands in Hardtack's column.
const hostRow = "host/"

// watched runs the timing of a part and notes what the host could do.
func (f Figures) watched(part string, run func() error) error {
	before := osbench.HostCores()
	if err := run(); err != nil {
		return err
	}
	f[hostRow+part] = osbench.Times{}
	add(f[hostRow+part], "median", osbench.OnHardtack, min(before, osbench.HostCores()))
	return nil
}

// storage is a line of init that runs the program storage; mounted one that runs a
// command in /mnt, where it has mounted the disk.
func storage(driver, mode string, n int) string {
	return fmt.Sprintf("/bench/storage %s %s %d\n", mode, device(driver), n)
}

func mounted(command string) string { return fmt.Sprintf("/bench/storage run /dev/vda %s\n", command) }

// Measure measures the parts that are wanted: counts, names, walks, times, cmail, leveldb.
func (c *Config) Measure(parts []string) (Figures, error) {
	programs, err := c.Prepare()
	if err != nil {
		return nil, err
	}
	f := Figures{}
	want := func(part string) bool { return slices.Contains(parts, part) }
	if want("counts") {
		if err := c.each(f, programs, 1, job{what: "instructions of operations", driver: "virtio", counts: true, limit: 20 * time.Minute,
			command: storage("virtio", "count", c.Operations)}); err != nil {
			return nil, err
		}
	}
	if want("names") {
		if err := c.each(f, programs, 1, job{what: "instructions of a large directory", driver: "virtio", counts: true, limit: 60 * time.Minute,
			command: storage("virtio", "names", c.Names)}); err != nil {
			return nil, err
		}
	}
	if want("walks") {
		if err := c.Walks(f); err != nil {
			return nil, err
		}
	}
	if want("times") {
		if err := f.watched("times", func() error { return c.times(f, programs) }); err != nil {
			return nil, err
		}
	}
	if want("cmail") {
		if err := f.watched("cmail", func() error { return c.cmail(f, programs) }); err != nil {
			return nil, err
		}
	}
	if want("leveldb") {
		for _, l := range LevelDB {
			if len(c.Variants) > 0 && !slices.Contains(c.Variants, l.Name) {
				continue
			}
			command := fmt.Sprintf("/bench/leveldb -n %d %s ", c.Entries, l.Flags)
			j := job{what: "LevelDB " + l.Name, prefix: l.Name + "/", counts: true, limit: 6 * time.Hour, command: command + "memory\n"}
			if l.Disk {
				j.driver, j.command = "virtio", mounted(command+"/mnt/db")
			}
			if c.Entries > smallEntries {
				j.memory = "4G"
			}
			if err := c.each(f, programs, 1, j); err != nil {
				return nil, err
			}
			f[l.Name+"/pairs"] = osbench.Times{}
			add(f[l.Name+"/pairs"], "median", osbench.OnHardtack, float64(c.Entries))
		}
	}
	return f, nil
}

// smallEntries is the size of suites from which on the machine has 4 GiB: without the
// collector a million pairs take more than two.
const smallEntries = 200000

// times measures rates.
func (c *Config) times(f Figures, programs osbench.Tree) error {
	for _, driver := range []string{"virtio", "nvme"} {
		if err := c.each(f, programs, c.Reps, job{what: "rates on " + driver, driver: driver, prefix: driver + "/", cpus: 2,
			command: storage(driver, "time", c.Millis) + storage(driver, "share", c.Millis), limit: 20 * time.Minute}); err != nil {
			return err
		}
		// Debian's cloud kernel has no AHCI: ours beside ours on virtio.
		if driver == "virtio" && slices.Contains(c.Systems, osbench.OnHardtack) {
			for range c.Reps {
				if err := c.run(f, programs, osbench.OnHardtack, job{what: "rates on ahci", driver: "ahci", prefix: "ahci/", cpus: 2,
					command: storage("ahci", "time", c.Millis), limit: 20 * time.Minute}); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// cmail measures CMailbench.
func (c *Config) cmail(f Figures, programs osbench.Tree) error {
	if err := c.each(f, programs, 1, job{what: "CMailbench, instructions", prefix: "count/", counts: true,
		command: fmt.Sprintf("/bench/cmail /tmp/mail 0 %d\n", c.Messages), limit: 20 * time.Minute}); err != nil {
		return err
	}
	for _, j := range []job{
		{what: "CMailbench in memory", prefix: "memory/", cpus: 2, limit: 20 * time.Minute,
			command: fmt.Sprintf("/bench/cmail /tmp/mail %d\n", 4*c.Millis)},
		{what: "CMailbench on disk", prefix: "disk/", cpus: 2, driver: "virtio", limit: 20 * time.Minute,
			command: mounted(fmt.Sprintf("/bench/cmail /mnt/mail %d", 4*c.Millis))},
	} {
		if err := c.each(f, programs, c.Reps, j); err != nil {
			return err
		}
	}
	return nil
}

// LevelDB are the variants of the suites.
var LevelDB = []struct {
	Name, Title, Flags string
	Disk               bool
}{
	{"mem-c-gc", "in memory, compression, collector", "", false},
	{"mem-gc", "in memory, no compression, collector", "-compress=false", false},
	{"mem-c", "in memory, compression, no collector", "-gc=false", false},
	{"disk-c-gc", "on disk, compression, collector", "", true},
	{"disk-gc", "on disk, no compression, collector", "-compress=false", true},
	{"disk-c", "on disk, compression, no collector", "-gc=false", true},
}

// Row is a line of a table.
type Row struct{ Name, Title string }

// The tables' lines.
var (
	CountRows = []Row{
		{"createsync", "create + write 1 KiB + fsync"}, {"appendsync", "append 200 B + fdatasync"},
		{"create", "create + write 1 KiB"}, {"unlink", "unlink"}, {"rename", "rename to another directory"},
		{"stat", "stat of a cached path, 5 names"}, {"cachedread", "read 4 KiB, cached"}, {"cachedwrite", "write 4 KiB, cached"},
	}
	NameRows = []Row{
		{"namecreate", "create, with the sync at the end"}, {"namestat", "stat, at random"},
		{"namelist", "readdir, a name"}, {"nameunlink", "unlink, with the sync at the end"},
	}
	TimeRows = []Row{
		{"seqread", "read in order, page cache cold, MiB/s"}, {"seqwrite", "write in order + fsync, MiB/s"},
		{"directread1", "read 4 KiB in order, O_DIRECT, one process, 1/s"}, {"directread4", "the same, four processes"},
		{"randread1", "read 4 KiB at random, O_DIRECT, one process, 1/s"}, {"randread4", "the same, four processes"},
		{"randwrite1", "write 4 KiB at random, O_DIRECT, one process, 1/s"}, {"randwrite4", "the same, four processes"},
		{"syncwrite1", "write 4 KiB at random + fdatasync, one process, 1/s"},
	}
	Suites = []string{"fillseq", "fillrandom", "overwrite", "batchwrite", "readseq", "readrandom"}
)

// DriverTitle is a driver's name in text.
func DriverTitle(d string) string {
	return map[string]string{"virtio": "virtio-blk", "nvme": "NVMe", "ahci": "AHCI"}[strings.TrimSuffix(d, "/")]
}
