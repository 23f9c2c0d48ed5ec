package ext4

import (
	"strings"
	"time"
)

// Info is what the super block says of a file system.
type Info struct {
	Label             string
	UUID              [16]byte
	BlockSize         int
	Blocks            uint64
	FreeBlocks        uint64 // as the groups count them
	Inodes            uint32
	FreeInodes        uint32
	InodeSize         int
	Groups            uint32
	Features          []string  // as tune2fs spells them
	Recover           bool      // it was not unmounted: the journal must be replayed
	Errors            bool      // something found it damaged
	Made, LastMounted time.Time // LastMounted is zero if it never was
	Mounts            uint16    // since the last check
}

var compatNames = map[uint32]string{
	0x1: "dir_prealloc", 0x2: "imagic_inodes", 0x4: "has_journal", 0x8: "ext_attr", 0x10: "resize_inode",
	0x20: "dir_index", 0x200: "sparse_super2", 0x400: "fast_commit", 0x800: "stable_inodes", 0x1000: "orphan_file",
}

// logHolds reports whether the log of a disk that was mounted without it has something
// to replay.
func (fs *FS) logHolds() bool {
	if !fs.o.NoLoad || fs.s.compat&compatHasJournal == 0 {
		return false
	}
	l, err := fs.findLog()
	return err == nil && l.dirty()
}

// Info describes the file system as it was when it was mounted, except for what is free.
func (fs *FS) Info() Info {
	s := fs.s
	i := Info{
		Label:     strings.TrimRight(string(s.raw[sbLabel:sbLabel+16]), "\x00"),
		BlockSize: int(s.blockSize), Blocks: s.blocks, FreeBlocks: uint64(max(fs.free.Load(), 0)),
		Inodes: s.inodes, FreeInodes: uint32(max(fs.freeIno.Load(), 0)), InodeSize: int(s.inodeSize), Groups: s.groups,
		Recover: s.incompat&incompatRecover != 0 || fs.logHolds(), Errors: le.Uint16(s.raw[sbState:])&stateError != 0,
		Made: time.Unix(int64(le.Uint32(s.raw[sbMkfsTime:])), 0), Mounts: le.Uint16(s.raw[sbMountCount:]),
	}
	copy(i.UUID[:], s.raw[sbUUID:])
	if t := le.Uint32(s.raw[sbMtime:]); t != 0 {
		i.LastMounted = time.Unix(int64(t), 0)
	}
	for _, f := range []struct {
		bits  uint32
		names map[uint32]string
	}{{s.compat, compatNames}, {s.incompat, incompatNames}, {s.roCompat, roCompatNames}} {
		if f.bits != 0 {
			i.Features = append(i.Features, strings.Split(featureNames(f.bits, f.names), ", ")...)
		}
	}
	return i
}
