// Package diskfiles has the files about disks and partitions: their files in /dev and
// /sys, /proc/partitions and /proc/diskstats.
package diskfiles

import (
	"fmt"
	"strings"

	"hardtack/abi/linux"
	"hardtack/kernel/disk/block"
	"hardtack/kernel/fs/devfs"
	"hardtack/kernel/pseudofs/sysfs"
)

// path is where a part is in /sys.
func path(p *block.Part) string {
	at := "devices/virtual/block/" + p.Disk.Name
	if p.Number != 0 {
		at += "/" + p.Name
	}
	return at
}

// Add makes the files of a disk or partition that has come.
func Add(p *block.Part) {
	if e := devfs.AddDisk(p.Name, p.Dev); e != 0 {
		block.Log("/dev/%s: %v", p.Name, e)
	}
	at := path(p) + "/"
	dev := fmt.Sprintf("%d:%d", linux.Major(p.Dev), linux.Minor(p.Dev))
	kind := "disk"
	l := p.Disk.Limits()
	text := map[string]func() string{
		"stat": func() string { return p.StatText() + "\n" },
	}
	fixed := map[string]any{
		"size": p.Sectors, "dev": dev, "ro": bit(l.ReadOnly), "alignment_offset": 0, "discard_alignment": 0,
	}
	if p.Number != 0 {
		kind = "partition"
		fixed["partition"], fixed["start"] = p.Number, p.Start
	} else {
		wholeFiles(p.Disk, fixed)
	}
	fixed["uevent"] = fmt.Sprintf("MAJOR=%d\nMINOR=%d\nDEVNAME=%s\nDEVTYPE=%s", linux.Major(p.Dev), linux.Minor(p.Dev), p.Name, kind)
	for name, v := range fixed {
		s := fmt.Sprintln(v)
		text[name] = func() string { return s }
	}
	for name, f := range text {
		sysfs.Add(at+name, f)
	}
	sysfs.Link("dev/block/"+dev, "../../"+path(p))
	sysfs.Link("class/block/"+p.Name, "../../"+path(p))
	if p.Number == 0 {
		sysfs.Link("block/"+p.Name, "../"+path(p))
	}
}

// wholeFiles are those that only a whole disk has.
func wholeFiles(d *block.Disk, fixed map[string]any) {
	l := d.Limits()
	queues, commands := d.Queues()
	cache := "write through"
	if l.WriteCache {
		cache = "write back"
	}
	for name, v := range map[string]any{
		"removable": bit(l.Removable), "range": block.Minors, "hidden": 0, "capability": 0,
		"device/model": d.Model(), "device/serial": d.Serial(), "serial": d.Serial(),
		"queue/logical_block_size": l.LogicalBlock, "queue/hw_sector_size": l.LogicalBlock,
		"queue/physical_block_size": l.PhysicalBlock, "queue/minimum_io_size": l.PhysicalBlock,
		"queue/optimal_io_size": l.OptimalIO, "queue/rotational": bit(l.Rotational),
		"queue/max_sectors_kb": l.MaxSectors / 2, "queue/max_hw_sectors_kb": l.MaxSectors / 2,
		"queue/max_segments": l.MaxSegments, "queue/nr_requests": commands,
		"queue/nr_hw_queues": queues, "queue/write_cache": cache, "queue/fua": bit(l.FUA),
		"queue/discard_granularity": l.DiscardGrain, "queue/discard_max_bytes": uint64(l.MaxDiscard) << 9,
		"queue/write_zeroes_max_bytes": uint64(l.MaxWriteZeroes) << 9, "queue/scheduler": "[none]",
		"queue/read_ahead_kb": block.MaxReadAhead * 4, "queue/nomerges": 0, "queue/zoned": "none",
	} {
		fixed[name] = v
	}
}

// Remove takes them away again.
func Remove(p *block.Part) {
	devfs.RemoveDisk(p.Name)
	sysfs.Remove(path(p))
	sysfs.Remove(fmt.Sprintf("dev/block/%d:%d", linux.Major(p.Dev), linux.Minor(p.Dev)))
	sysfs.Remove("class/block/" + p.Name)
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// PartitionsText is /proc/partitions.
func PartitionsText() []byte {
	var b strings.Builder
	b.WriteString("major minor  #blocks  name\n\n")
	for _, d := range block.Disks() {
		for _, p := range d.Parts() {
			fmt.Fprintf(&b, "%4d  %7d %10d %s\n", linux.Major(p.Dev), linux.Minor(p.Dev), p.Sectors/2, p.Name)
		}
	}
	return []byte(b.String())
}

// DiskstatsText is /proc/diskstats.
func DiskstatsText() []byte {
	var b strings.Builder
	for _, d := range block.Disks() {
		for _, p := range d.Parts() {
			fmt.Fprintf(&b, "%4d %7d %s %s\n", linux.Major(p.Dev), linux.Minor(p.Dev), p.Name, p.StatText())
		}
	}
	return []byte(b.String())
}
