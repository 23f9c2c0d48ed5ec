package machine

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"hardtack/tool/fault"
)

// Controllers that a disk can be behind.
const (
	DiskVirtio = "virtio"
	DiskAHCI   = "ahci"
	DiskNVMe   = "nvme"
)

// maxAHCI is how many ports q35's controller has.
const maxAHCI = 6

// Disk is a raw image, or a block device of the host, as a disk of the guest.
type Disk struct {
	File     string
	Driver   string
	ReadOnly bool
	Overlay  bool // what is written goes to a file that is gone with the machine
}

// ParseDisk reads FILE[,driver=virtio|ahci|nvme][,ro]. A file's name may have
// commas, unless what follows one reads like an option.
func ParseDisk(s string) (Disk, error) {
	d, _, err := parseDisk("--disk", s, "FILE[,driver=virtio|ahci|nvme][,ro]", false)
	return d, err
}

// ParseRoot reads FILE[,part=N][,driver=virtio|ahci|nvme][,ro]; part is 0 where
// the whole disk is meant.
func ParseRoot(s string) (d Disk, part int, err error) {
	return parseDisk("--root", s, "FILE[,part=N][,driver=virtio|ahci|nvme][,ro]", true)
}

func parseDisk(flag, s, form string, parts bool) (d Disk, part int, err error) {
	d = Disk{File: s, Driver: DiskVirtio}
	for {
		at := strings.LastIndexByte(d.File, ',')
		if at < 0 {
			break
		}
		option := d.File[at+1:]
		if driver, ok := strings.CutPrefix(option, "driver="); ok {
			switch driver {
			case DiskVirtio, DiskAHCI, DiskNVMe:
				d.Driver = driver
			default:
				return d, 0, fault.Bad("%s %s: driver=%s: want virtio, ahci or nvme", flag, s, driver)
			}
		} else if number, ok := strings.CutPrefix(option, "part="); ok && parts {
			if part, err = strconv.Atoi(number); err != nil || part < 1 {
				return d, 0, fault.Bad("%s %s: part=%s: want the number of a partition", flag, s, number)
			}
		} else if option == "ro" {
			d.ReadOnly = true
		} else {
			break
		}
		d.File = d.File[:at]
	}
	if d.File == "" {
		return d, 0, fault.Bad("%s %q: want %s", flag, s, form)
	}
	return d, part, nil
}

// DeviceName is the guest's name for disk i, or for a partition of it.
func (c *Config) DeviceName(i, part int) string {
	n := 0
	for _, d := range c.Disks[:i] {
		if d.Driver == c.Disks[i].Driver {
			n++
		}
	}
	name := ""
	switch c.Disks[i].Driver {
	case DiskAHCI:
		name = "/dev/sd" + letters(n)
	case DiskNVMe:
		name = fmt.Sprintf("/dev/nvme%dn1", n)
		if part > 0 {
			name += "p"
		}
	default:
		name = "/dev/vd" + letters(n)
	}
	if part > 0 {
		name += strconv.Itoa(part)
	}
	return name
}

// letters counts a, b, … z, aa, ab, …
func letters(n int) string {
	s := ""
	for ; n >= 0; n = n/26 - 1 {
		s = string(rune('a'+n%26)) + s
	}
	return s
}

// check refuses a disk that the machine cannot have; flag named it.
func (d *Disk) check(flag, machine string) error {
	switch {
	case machine != Q35 && d.Driver != DiskVirtio:
		return fault.Bad("%s %s: driver=%s needs --machine q35: %s has virtio only", flag, d.File, d.Driver, machine)
	case d.ReadOnly && d.Driver == DiskAHCI:
		return fault.Bad("%s %s: a disk with driver=ahci cannot be ro: QEMU refuses that", flag, d.File)
	}
	mode := os.O_RDWR
	if d.ReadOnly {
		mode = os.O_RDONLY
	}
	st, err := os.Stat(d.File)
	if err == nil && st.Mode()&(os.ModeDir|os.ModeCharDevice|os.ModeNamedPipe|os.ModeSocket) != 0 {
		return fault.Bad("%s %s: neither a file nor a block device", flag, d.File)
	}
	var f *os.File
	if err == nil {
		f, err = os.OpenFile(d.File, mode, 0)
	}
	if err != nil {
		hint := ""
		if os.IsPermission(err) && !d.ReadOnly {
			hint = " (,ro needs no permission to write)"
		}
		return fault.Bad("%s %s: %v%s", flag, d.File, rootCause(err), hint)
	}
	defer f.Close()
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return fault.Bad("%s %s: %v", flag, d.File, rootCause(err))
	}
	if size == 0 || size%512 != 0 {
		return fault.Bad("%s %s: %d bytes: want a multiple of 512, as in: truncate -s 4G %s", flag, d.File, size, d.File)
	}
	var magic [8]byte
	if _, err := f.ReadAt(magic[:], 0); err != nil {
		return fault.Bad("%s %s: %v", flag, d.File, rootCause(err))
	}
	for start, kind := range map[string]string{"QFI\xfb": "qcow2", "KDMV": "VMDK", "conectix": "VHD", "vhdxfile": "VHDX"} {
		if strings.HasPrefix(string(magic[:]), start) {
			return fault.Bad("%s %s: a %s image; only raw ones work: qemu-img convert -O raw makes one", flag, d.File, kind)
		}
	}
	return nil
}

// checkDisks refuses what QEMU or the guest could not do.
func (c *Config) checkDisks() error {
	ahci := 0
	for i := range c.Disks {
		d := &c.Disks[i]
		flag := "--disk"
		if i == 0 && c.Root {
			flag = "--root"
		}
		if err := d.check(flag, c.Machine); err != nil {
			return err
		}
		if d.Driver == DiskAHCI {
			ahci++
		}
		for _, other := range c.Disks[:i] {
			a, err1 := os.Stat(d.File)
			b, err2 := os.Stat(other.File)
			if err1 == nil && err2 == nil && os.SameFile(a, b) && !(d.ReadOnly && other.ReadOnly) {
				return fault.Bad("--disk %s: given twice, and not read-only", d.File)
			}
		}
	}
	if ahci > maxAHCI {
		return fault.Bad("%d disks with driver=ahci: the machine has %d ports", ahci, maxAHCI)
	}
	return nil
}

// diskArgs are QEMU's arguments for the disks. QEMU locks the files; the
// guest's flushes are fdatasync of the file.
func (c *Config) diskArgs(bus string) (args []string) {
	ahci := 0
	for i, d := range c.Disks {
		id := fmt.Sprintf("disk%d", i)
		drive := d.drive(id)
		device := ""
		switch d.Driver {
		case DiskAHCI:
			device = fmt.Sprintf("ide-hd,drive=%s,bus=ide.%d,serial=%s", id, ahci, id)
			ahci++
		case DiskNVMe:
			device = fmt.Sprintf("nvme,drive=%s,serial=%s", id, id)
		default:
			device = fmt.Sprintf("virtio-blk-%s,drive=%s,serial=%s,num-queues=%d", bus, id, id, c.CPUs)
		}
		args = append(args, "-drive", drive, "-device", device)
	}
	return args
}

// drive is the disk as QEMU's -drive takes it.
func (d *Disk) drive(id string) string {
	drive := fmt.Sprintf("if=none,id=%s,format=raw,cache=writeback,discard=unmap,file=%s", id, strings.ReplaceAll(d.File, ",", ",,"))
	if d.ReadOnly {
		drive += ",readonly=on"
	}
	if d.Overlay {
		drive += ",snapshot=on"
	}
	return drive
}
