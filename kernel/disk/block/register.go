package block

import (
	"sync"

	"hardtack/abi/linux"
	"hardtack/kernel/base/hook"
	"hardtack/kernel/fs/vfs"
)

// Major numbers: those of Linux for SCSI disks and for devices of the extended
// range, and the first that Linux gives away at run time for virtio.
const (
	majorSD       = 8
	majorVirtio   = 254
	majorExtended = 259

	// Minors is how many numbers a disk has that has a range of them.
	Minors = 16
)

// devices are the parts that have a device file.
var devices struct {
	mu       sync.Mutex
	byNumber map[uint64]*Part // guarded by mu
	extended uint32           // guarded by mu; minors of majorExtended given away
	claims   map[*Disk][]*Part
	opens    map[*Disk]int
}

// PartAdded and PartRemoved are told of disks and partitions that come and go, with
// devices.mu held. kernel/pseudofs/diskfiles shows them to programs.
var PartAdded, PartRemoved = hook.Default(func(*Part) {}), hook.Default(func(*Part) {})

// SyncAll writes every disk's cache back and flushes the disks.
func SyncAll() {
	for _, d := range Disks() {
		d.cache.writeBack(0, ^uint64(0))
		d.Whole().Flush()
	}
}

// Kind is how disks of a controller are called.
type Kind struct {
	Prefix string // vd, sd, nvme
	Major  uint32 // 0: extended
}

// Kinds of disks.
var (
	Virtio = Kind{"vd", majorVirtio}
	SCSI   = Kind{"sd", majorSD}
	NVMe   = Kind{"nvme", 0}
)

// Letters is the ending of the n-th disk's name: a … z, aa, ab …
func Letters(n int) string {
	s := ""
	for ; n >= 0; n = n/26 - 1 {
		s = string(rune('a'+n%26)) + s
	}
	return s
}

// Add makes a disk known: its partitions are read, and both appear in /dev and
// /sys. n is the disk's number among those of its kind.
func (d *Disk) Add(k Kind, n int) error {
	disks.mu.Lock()
	disks.list = append(disks.list, d)
	disks.mu.Unlock()
	err := d.Scan()
	devices.mu.Lock()
	defer devices.mu.Unlock()
	for _, p := range d.Parts() {
		p.Dev = number(k, n, p.Number)
		p.show()
	}
	return err
}

// number is a part's device number; devices.mu is held.
func number(k Kind, n, part int) uint64 {
	if k.Major != 0 && part < Minors && n < 1<<16 {
		return linux.Makedev(k.Major, uint32(n*Minors+part))
	}
	devices.extended++
	return linux.Makedev(majorExtended, devices.extended-1)
}

func byNumber(dev uint64) *Part {
	devices.mu.Lock()
	defer devices.mu.Unlock()
	return devices.byNumber[dev]
}

// open counts open files and returns those of the disk.
func (p *Part) open(n int) int {
	devices.mu.Lock()
	defer devices.mu.Unlock()
	if devices.opens == nil {
		devices.opens = map[*Disk]int{}
	}
	devices.opens[p.Disk] += n
	return devices.opens[p.Disk]
}

// Claim reserves a part for one user that shares it with no other claim (a
// file system, an open with O_EXCL); false when it, its disk, or a part of the
// disk is claimed.
func (p *Part) Claim() bool {
	devices.mu.Lock()
	defer devices.mu.Unlock()
	for _, o := range devices.claims[p.Disk] {
		if o == p || o.Number == 0 || p.Number == 0 {
			return false
		}
	}
	if devices.claims == nil {
		devices.claims = map[*Disk][]*Part{}
	}
	devices.claims[p.Disk] = append(devices.claims[p.Disk], p)
	return true
}

// Release undoes a Claim.
func (p *Part) Release() {
	devices.mu.Lock()
	defer devices.mu.Unlock()
	list := devices.claims[p.Disk]
	for i, o := range list {
		if o == p {
			devices.claims[p.Disk] = append(list[:i:i], list[i+1:]...)
			return
		}
	}
}

// Rescan reads the partition table again; EBUSY while a partition is claimed or
// more than the one file that asks is open.
func (d *Disk) Rescan() linux.Errno {
	devices.mu.Lock()
	defer devices.mu.Unlock()
	if len(devices.claims[d]) > 0 || devices.opens[d] > 1 {
		return linux.EBUSY
	}
	d.cache.writeBack(0, ^uint64(0))
	whole := d.Whole()
	old := d.Parts()[1:]
	err := d.Scan()
	for _, p := range old {
		p.hide()
	}
	k := Kind{"", linux.Major(whole.Dev)}
	n := int(linux.Minor(whole.Dev)) / Minors
	if k.Major == majorExtended {
		k.Major = 0
	}
	for _, p := range d.Parts()[1:] {
		p.Dev = number(k, n, p.Number)
		p.show()
	}
	if err != nil {
		Log("%v", err)
		return linux.EIO
	}
	return 0
}

// Lookup finds a disk or partition by its name in /dev, nil if there is none.
func Lookup(name string) *Part {
	for _, d := range Disks() {
		for _, p := range d.Parts() {
			if p.Name == name {
				return p
			}
		}
	}
	return nil
}

// ByNumber finds it by its device number, nil if there is none.
func ByNumber(dev uint64) *Part { return byNumber(dev) }

// show makes a part known; devices.mu is held.
func (p *Part) show() {
	if devices.byNumber == nil {
		devices.byNumber = map[uint64]*Part{}
		for major, name := range map[uint32]string{majorSD: "sd", majorVirtio: "virtblk", majorExtended: "blkext"} {
			vfs.NameMajor(major, name)
		}
	}
	devices.byNumber[p.Dev] = p
	PartAdded.Call(p)
}

// hide takes it away again; devices.mu is held.
func (p *Part) hide() {
	delete(devices.byNumber, p.Dev)
	PartRemoved.Call(p)
}

// Sectors returns what all disks have read and written.
func Sectors() (read, written uint64) {
	for _, d := range Disks() {
		s := d.Whole().Stats()
		read += s.Reads.Sectors
		written += s.Writes.Sectors
	}
	return read, written
}
