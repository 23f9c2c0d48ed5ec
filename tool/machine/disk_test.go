package machine

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestParseDisk(t *testing.T) {
	for s, want := range map[string]Disk{
		"a.img":                         {"a.img", DiskVirtio, false, false},
		"a.img,ro":                      {"a.img", DiskVirtio, true, false},
		"/x/a,b.img,driver=nvme":        {"/x/a,b.img", DiskNVMe, false, false},
		"a.img,ro,driver=nvme":          {"a.img", DiskNVMe, true, false},
		"a.img,driver=ahci":             {"a.img", DiskAHCI, false, false},
		"a.img,drvier=ahci":             {"a.img,drvier=ahci", DiskVirtio, false, false},
		"a.img,driver=virtio,ro":        {"a.img", DiskVirtio, true, false},
		"with=equals,driver=virtio":     {"with=equals", DiskVirtio, false, false},
		"ro":                            {"ro", DiskVirtio, false, false},
		"driver=nvme":                   {"driver=nvme", DiskVirtio, false, false},
		"comma,at,the,end,,driver=nvme": {"comma,at,the,end,", DiskNVMe, false, false},
	} {
		if d, err := ParseDisk(s); err != nil || d != want {
			t.Errorf("%q: %+v, %v; want %+v", s, d, err, want)
		}
	}
	for _, s := range []string{"", "a.img,driver=scsi", ",ro", "a.img,driver="} {
		if d, err := ParseDisk(s); err == nil {
			t.Errorf("%q: %+v", s, d)
		}
	}
}

func TestParseRoot(t *testing.T) {
	for s, want := range map[string]struct {
		d    Disk
		part int
	}{
		"a.img":                       {Disk{"a.img", DiskVirtio, false, false}, 0},
		"a.img,part=3":                {Disk{"a.img", DiskVirtio, false, false}, 3},
		"a.img,ro,part=1,driver=nvme": {Disk{"a.img", DiskNVMe, true, false}, 1},
	} {
		if d, part, err := ParseRoot(s); err != nil || d != want.d || part != want.part {
			t.Errorf("%q: %+v, %d, %v; want %+v", s, d, part, err, want)
		}
	}
	for _, s := range []string{"", "a.img,part=0", "a.img,part=x", "a.img,part=", "a.img,driver=scsi"} {
		if d, _, err := ParseRoot(s); err == nil || !strings.Contains(err.Error(), "--root") {
			t.Errorf("%q: %+v, %v", s, d, err)
		}
	}
	if d, err := ParseDisk("a.img,part=1"); err != nil || d.File != "a.img,part=1" {
		t.Errorf("--disk has no part: %+v, %v", d, err)
	}
}

func TestDeviceName(t *testing.T) {
	c := Config{Disks: []Disk{{"a", DiskVirtio, false, false}, {"b", DiskNVMe, false, false}, {"c", DiskVirtio, false, false}, {"d", DiskNVMe, false, false}, {"e", DiskAHCI, false, false}}}
	for i, want := range [][2]string{{"/dev/vda", "/dev/vda2"}, {"/dev/nvme0n1", "/dev/nvme0n1p2"}, {"/dev/vdb", "/dev/vdb2"},
		{"/dev/nvme1n1", "/dev/nvme1n1p2"}, {"/dev/sda", "/dev/sda2"}} {
		if a, b := c.DeviceName(i, 0), c.DeviceName(i, 2); a != want[0] || b != want[1] {
			t.Errorf("disk %d: %s, %s", i, a, b)
		}
	}
	if got := letters(26); got != "aa" {
		t.Error(got)
	}
}

func TestCheckDisks(t *testing.T) {
	dir := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good := file("good", strings.Repeat("x", 1024))
	other := file("other", strings.Repeat("x", 512))
	for _, c := range []struct {
		machine string
		disks   []Disk
		want    string // part of the error, "" for none
	}{
		{MicroVM, []Disk{{good, DiskVirtio, false, false}, {other, DiskVirtio, true, false}}, ""},
		{Q35, []Disk{{good, DiskNVMe, true, false}, {other, DiskAHCI, false, false}}, ""},
		{MicroVM, []Disk{{good, DiskNVMe, false, false}}, "needs --machine q35"},
		{MicroVM, []Disk{{good, DiskAHCI, false, false}}, "needs --machine q35"},
		{Q35, []Disk{{good, DiskAHCI, true, false}}, "cannot be ro"},
		{MicroVM, []Disk{{good, DiskVirtio, false, false}, {good, DiskVirtio, true, false}}, "twice"},
		{MicroVM, []Disk{{filepath.Join(dir, "none"), DiskVirtio, false, false}}, "no such file"},
		{MicroVM, []Disk{{dir, DiskVirtio, false, false}}, "neither a file"},
		{MicroVM, []Disk{{file("empty", ""), DiskVirtio, false, false}}, "multiple of 512"},
		{MicroVM, []Disk{{file("odd", strings.Repeat("x", 700)), DiskVirtio, false, false}}, "multiple of 512"},
		{MicroVM, []Disk{{file("qcow", "QFI\xfb"+strings.Repeat("x", 508)), DiskVirtio, false, false}}, "qcow2"},
	} {
		cfg := Config{CPUs: 1, Memory: MinMemory, Machine: c.machine, Accel: TCG, Disks: c.disks}
		err := cfg.Check()
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s %+v: %v, want %q", c.machine, c.disks, err, c.want)
		}
	}
}

func TestDiskArgs(t *testing.T) {
	cfg := Config{CPUs: 3, Machine: Q35, Disks: []Disk{{"a,b", DiskVirtio, false, false}, {"c", DiskAHCI, false, false}, {"d", DiskNVMe, true, false}, {"e", DiskAHCI, false, false}}}
	args := cfg.diskArgs("pci")
	for _, want := range []string{
		"if=none,id=disk0,format=raw,cache=writeback,discard=unmap,file=a,,b",
		"virtio-blk-pci,drive=disk0,serial=disk0,num-queues=3",
		"ide-hd,drive=disk1,bus=ide.0,serial=disk1",
		"if=none,id=disk2,format=raw,cache=writeback,discard=unmap,file=d,readonly=on",
		"nvme,drive=disk2,serial=disk2",
		"ide-hd,drive=disk3,bus=ide.1,serial=disk3",
	} {
		if !slices.Contains(args, want) {
			t.Errorf("%q is missing in %q", want, args)
		}
	}
}
