package ext4

import (
	"cmp"
	"slices"
)

// zone is the set of blocks at fixed places, which no file may own: copies of the super
// block and the descriptors, bitmaps, inode tables, and the journal. Its runs are sorted
// and disjoint.
type zone []run

// findZone collects the zone. Overlaps are damage. l may be nil.
func (fs *FS) findZone(l *logArea) error {
	s := fs.s
	var z zone
	for n := range s.groups {
		g := &fs.groups[n]
		z = append(z, run{g.blockBitmap, 1}, run{g.inodeBitmap, 1}, run{g.table, uint64(s.inodeTableBlocks())})
		if s.hasSuper(n) {
			z = append(z, run{s.groupStart(n), min(1+uint64(s.gdtBlocks), uint64(s.groupBlocks(n)))})
		}
	}
	if l != nil {
		z = append(z, l.runs...)
	}
	slices.SortFunc(z, func(a, b run) int { return cmp.Compare(a.blk, b.blk) })
	out := z[:0]
	for _, r := range z {
		k := len(out) - 1
		switch {
		case k < 0 || out[k].blk+out[k].n < r.blk:
			out = append(out, r)
		case out[k].blk+out[k].n == r.blk:
			out[k].n += r.n
		default:
			return corrupt("block %d is used for two things", r.blk)
		}
	}
	fs.zone = slices.Clip(out)
	return nil
}

// meets reports whether any of the blocks blk … blk+n-1 is in the zone.
func (z zone) meets(blk, n uint64) bool {
	i, _ := slices.BinarySearchFunc(z, blk, func(r run, blk uint64) int {
		if r.blk+r.n <= blk {
			return -1
		}
		return 1
	})
	return i < len(z) && z[i].blk < blk+n
}

// marked checks that a group's bitmap, of size blocks from start on, marks the zone's
// blocks as used: otherwise files would get them.
func (z zone) marked(bitmap []byte, start uint64, size uint32) error {
	i, _ := slices.BinarySearchFunc(z, start, func(r run, blk uint64) int {
		if r.blk+r.n <= blk {
			return -1
		}
		return 1
	})
	end := start + uint64(size)
	for ; i < len(z) && z[i].blk < end; i++ {
		from, to := max(z[i].blk, start)-start, min(z[i].blk+z[i].n, end)-start
		if at := nextZero(bitmap, uint32(from), uint32(to)); uint64(at) < to {
			return corrupt("block %d is marked free in its bitmap and part of the layout", start+uint64(at))
		}
	}
	return nil
}

// mayHave reports whether blocks blk … blk+n-1 may belong to a file.
func (in *Inode) mayHave(blk, n uint64) bool {
	fs := in.fs
	return fs.s.valid(blk, n) && (in.ino == fs.s.journal || !fs.zone.meets(blk, n))
}
