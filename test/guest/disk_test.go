package guest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hardtack/test/guest/disk/pattern"
)

const (
	diskBlocks     = 1024 // written by the program
	partitionStart = 2048 // sectors
	diskSize       = 32 << 20
)

// diskImage makes a raw image with one partition.
func diskImage(t *testing.T) string {
	file := filepath.Join(t.TempDir(), "disk")
	b := make([]byte, diskSize)
	e := b[446:]
	e[4] = 0x83
	binary.LittleEndian.PutUint32(e[8:], partitionStart)
	binary.LittleEndian.PutUint32(e[12:], diskSize/512-partitionStart)
	b[510], b[511] = 0x55, 0xaa
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// compareImage looks for the program's blocks from a sector on.
func compareImage(t *testing.T, file string, sector, but int) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	wrong := 0
	for n := range diskBlocks {
		if n != but && !bytes.Equal(b[sector*512+n*pattern.Size:][:pattern.Size], pattern.Block(n)) {
			wrong++
		}
	}
	if wrong > 0 {
		t.Errorf("%d of %d blocks of the image differ", wrong, diskBlocks)
	}
	if rest := b[sector*512+diskBlocks*pattern.Size:]; !bytes.Equal(rest, make([]byte, len(rest))) {
		t.Error("the image was written where nobody wrote")
	}
}

// TestDisk runs the same program on a partition behind each controller, and
// compares the image.
func TestDisk(t *testing.T) {
	needGuest(t)
	t.Parallel()
	repo, dir := repository(t), t.TempDir()
	if err := goBuild(repo, filepath.Join(dir, "disk"), "./test/guest/disk"); err != nil {
		t.Fatal(err)
	}
	tool := command(t, repo, dir)
	root := guestRoot(t, dir, "disk")
	blocks := fmt.Sprint(diskBlocks)
	for _, c := range []struct{ machine, driver, device string }{
		{"microvm", "virtio", "/dev/vda1"},
		{"q35", "virtio", "/dev/vda1"},
		{"q35", "ahci", "/dev/sda1"},
		{"q35", "nvme", "/dev/nvme0n1p1"},
	} {
		t.Run(c.machine+" "+c.driver, func(t *testing.T) {
			file := diskImage(t)
			out, err := inGuest(t, tool, root, 4*time.Minute, []string{"--machine", c.machine, "--disk", file + ",driver=" + c.driver},
				"/disk", "-blocks", blocks, c.device)
			if err != nil || !strings.Contains(out, "disk: ok") {
				t.Fatalf("%v\n%s", err, words(out, 60))
			}
			compareImage(t, file, partitionStart, -1)
		})
	}
	devices := map[string][2]string{
		"virtio": {"virtio-blk-pci,drive=d", "/dev/vda"},
		"ahci":   {"ide-hd,drive=d,bus=ide.0", "/dev/sda"},
		"nvme":   {"nvme,drive=d,serial=1", "/dev/nvme0n1"},
	}
	for _, c := range []struct {
		name   string
		inject []string // rules of blkdebug
		lost   int
		args   []string
	}{
		// One block of the medium is bad, for ever.
		{"bad block", []string{"iotype=write,sector=4004,once=off"}, 500, []string{"-lost", "500"}},
		// Errors that pass are not seen by programs.
		{"passing errors", []string{"iotype=write,sector=800,once=on", "iotype=write,sector=1600,once=on", "iotype=read,sector=2400,once=on"}, -1, nil},
		{"failing flush", []string{"iotype=flush,once=on"}, -1, []string{"-noflush"}},
	} {
		for driver, d := range devices {
			t.Run(c.name+" "+driver, func(t *testing.T) {
				file := diskImage(t)
				flags := []string{"--machine", "q35"}
				inject := ""
				for i, rule := range c.inject {
					inject += fmt.Sprintf(",inject-error.%d.event=none,inject-error.%d.errno=5", i, i)
					for _, r := range strings.Split(rule, ",") {
						inject += fmt.Sprintf(",inject-error.%d.%s", i, r)
					}
				}
				for _, a := range []string{
					"-blockdev", "driver=file,node-name=f,filename=" + file,
					"-blockdev", "driver=blkdebug,node-name=b,image=f" + inject,
					"-blockdev", "driver=raw,node-name=d,file=b", "-device", d[0],
				} {
					flags = append(flags, "--qemu-arg", a)
				}
				argv := append([]string{"/disk", "-blocks", blocks}, c.args...)
				out, err := inGuest(t, tool, root, 4*time.Minute, flags, append(argv, d[1])...)
				if err != nil || !strings.Contains(out, "disk: ok") {
					t.Fatalf("%v\n%s", err, words(out, 60))
				}
				compareImage(t, file, 0, c.lost)
			})
		}
	}
}
