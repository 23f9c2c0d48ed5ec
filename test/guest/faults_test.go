package guest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	osbench "hardtack/bench/os"
	"hardtack/ext4"
	"hardtack/test/nbd"
)

// ram is a disk's content as a file.
type ram []byte

func (r ram) ReadAt(p []byte, off int64) (int, error)  { return copy(p, r[off:]), nil }
func (r ram) WriteAt(p []byte, off int64) (int, error) { return copy(r[off:], p), nil }
func (r ram) Sync() error                              { return nil }

// faultyDisk is an ext4 disk that fails on command, and QEMU's arguments for it.
type faultyDisk struct {
	*nbd.Server
	data   ram
	args   []string
	name   string // in /dev
	second string // the disk that takes commands or notes
	ro     string // the same disk, read-only, under this name; "" if there is none
}

func newFaultyDisk(t *testing.T, driver string) *faultyDisk {
	t.Helper()
	return newServedDisk(t, driver, "control", 4096)
}

// newServedDisk makes a disk with another beside it: an export of the server.
func newServedDisk(t *testing.T, driver, beside string, blockSize int) *faultyDisk {
	t.Helper()
	d := &faultyDisk{data: make(ram, 64<<20), second: "/dev/vda"}
	options := ext4.MkfsOptions{Zeroed: true, BytesPerInode: 64 << 10, BlockSize: blockSize}
	if err := ext4.Mkfs(ext4.NewFileDevice(d.data, int64(len(d.data))), options); err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "nbd") // a socket's name is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	socket := filepath.Join(dir, "s")
	if d.Server, err = nbd.Listen(socket, d.data); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	node := func(name, export, more string) {
		d.args = append(d.args,
			"-blockdev", fmt.Sprintf("driver=nbd,node-name=%s-nbd,server.type=unix,server.path=%s,export=%s%s", name, socket, export, more),
			"-blockdev", fmt.Sprintf("driver=raw,node-name=%s,file=%s-nbd%s", name, name, more))
	}
	node("data", "data", "")
	node("control", beside, "")
	const virtio = "virtio-blk-pci,werror=report,rerror=report,drive="
	switch driver {
	case "virtio":
		node("ro", "data", ",read-only=on")
		d.name, d.second, d.ro = "/dev/vda", "/dev/vdb", "/dev/vdc"
		d.args = append(d.args, "-device", virtio+"data")
	case "nvme":
		d.name = "/dev/nvme0n1"
		d.args = append(d.args, "-device", "nvme,drive=data,serial=1")
	case "ahci":
		d.name = "/dev/sda"
		d.args = append(d.args, "-device", "ide-hd,drive=data,bus=ide.0,werror=report,rerror=report")
	}
	d.args = append(d.args, "-device", virtio+"control")
	if d.ro != "" {
		d.args = append(d.args, "-device", virtio+"ro")
	}
	return d
}

// check looks at the disk when the machine has ended.
func (d *faultyDisk) check(t *testing.T) {
	t.Helper()
	d.Close()
	if n := d.Failures(); n < 20 {
		t.Errorf("%d requests failed on command", n)
	}
	if n, err := ext4.Check(ext4.NewFileDevice(d.data, int64(len(d.data))), func(p string) { t.Error(p) }); n != 0 || err != nil {
		t.Errorf("%d problems, %v", n, err)
	}
}

// noted are the lines that the program printed.
func (d *faultyDisk) noted() []string { return strings.Split(strings.TrimSpace(d.Notes()), "\n") }

// TestDiskErrors fails requests of a disk under a running system, behind each
// controller, and compares what a program sees with what it sees on Linux, in the same
// QEMU. Debian's kernel has no AHCI: there it is what Linux says of virtio.
func TestDiskErrors(t *testing.T) {
	needGuest(t)
	for _, name := range []string{"gcc", "apt-get"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skip("needs ", name)
		}
	}
	t.Parallel()
	dirs, err := osbench.FindDirs()
	if err != nil {
		t.Fatal(err)
	}
	linux, err := debianLinux(dirs)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	program := filepath.Join(dir, "faults")
	if err := cBuild(program, filepath.Join(dirs.Repo, "test/guest/storage/faults.c")); err != nil {
		t.Fatal(err)
	}
	code, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	tool := command(t, dirs.Repo, dir)
	root := guestRoot(t, dir, "faults")

	t.Run("skipped time", func(t *testing.T) { testSkippedTime(t, tool, root) })
	seen := map[string][]string{}
	onLinux := func(t *testing.T, driver string) []string {
		if driver == "ahci" {
			driver = "nvme" // which has no read-only disk either
		}
		if seen[driver] != nil {
			return seen[driver]
		}
		d := newFaultyDisk(t, driver)
		tree, err := osbench.Programs(dirs, strings.TrimSpace("/bench/faults disk "+d.name+" "+d.ro)+"\n")
		if err != nil {
			t.Fatal(err)
		}
		tree.Add("bench/faults", 0o755, code)
		m, err := osbench.Boot{OS: osbench.OnLinux, Root: tree, CPUs: 1, Memory: "512M", Machine: "q35", Timeout: 20 * time.Minute, Args: d.args}.Start(dirs, linux)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := m.Wait(); err != nil {
			t.Fatalf("Linux: %v", err)
		}
		lines := d.noted()
		if !slices.Contains(lines, "--- PASS: disk: it is read-only") {
			t.Fatalf("Linux:\n%s\n%s", d.Notes(), tail(m.Output(), 20))
		}
		seen[driver] = lines
		return lines
	}
	for _, driver := range []string{"virtio", "nvme", "ahci"} {
		t.Run(driver, func(t *testing.T) {
			d := newFaultyDisk(t, driver)
			flags := []string{"--machine", "q35", "--memory", "512M"}
			for _, a := range d.args {
				flags = append(flags, "--qemu-arg", a)
			}
			argv := []string{"/faults", "disk", d.name}
			if d.ro != "" {
				argv = append(argv, d.ro)
			}
			want := onLinux(t, driver)
			out, err := inGuest(t, tool, root, 20*time.Minute, flags, argv...)
			if err != nil {
				t.Errorf("%v\n%s\n%s", err, d.Notes(), tail(out, 20))
			}
			compareFaults(t, want, d.noted())
			d.check(t)
		})
	}
}

// testSkippedTime: a machine that counts instructions skips the time in which it is
// idle, minutes while a slow disk does a single request. Nobody may take the disk for
// hung, and no request for failed.
func testSkippedTime(t *testing.T, tool, root string) {
	d := newFaultyDisk(t, "virtio")
	flags := []string{"--machine", "q35", "--memory", "512M", "--cpus", "1", "--icount"}
	for _, a := range d.args {
		flags = append(flags, "--qemu-arg", a)
	}
	out, err := inGuest(t, tool, root, 20*time.Minute, flags, "/faults", "slow", d.name)
	if err != nil || !slices.Contains(d.noted(), "--- PASS: disk: it is slow") || strings.Contains(out, "no answer") || strings.Contains(out, "reset") {
		t.Errorf("%v\n%s\n%s", err, d.Notes(), tail(out, 20))
	}
}

// faultsDiffer are the errors that are others on Linux. Its NVMe driver calls a request
// that QEMU's host could not do an error of the medium, which read(2) and the like pass
// on as ENODATA where no cache is between; it takes groups whose bitmaps cannot be read
// for full; and metadata that it reads ahead of need and cannot have makes it read-only,
// sometimes. Its umount(2) does not report what could not be written.
var faultsDiffer = map[string]string{
	"O_DIRECT: -1 ENODATA":       "O_DIRECT: -1 EIO",
	"fdatasync: ENODATA":         "fdatasync: EIO",
	"mkdir or its fsync: ENOSPC": "mkdir or its fsync: EIO",
	"still writable: EROFS":      "still writable: ok",
	"umount: ok":                 "umount: EIO",
}

// compareFaults wants the same lines, except for those that faultsDiffer explains.
func compareFaults(t *testing.T, want, got []string) {
	t.Helper()
	test := ""
	for i := 0; i < max(len(want), len(got)); i++ {
		var w, g string
		if i < len(want) {
			w = strings.TrimSpace(want[i])
		}
		if i < len(got) {
			g = strings.TrimSpace(got[i])
		}
		if name, ok := strings.CutPrefix(w, "=== RUN   "); ok {
			test = name
		}
		if ours, ok := faultsDiffer[w]; ok {
			w = ours
		}
		if w != g {
			t.Errorf("%s: %q, Linux %q", test, g, w)
		}
	}
}
