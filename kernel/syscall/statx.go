package syscall

import (
	"encoding/binary"

	"hardtack/abi/linux"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/fs/vfs"
	"hardtack/kernel/process/proc"
)

// statxResult is what statx tells of a file.
type statxResult struct {
	st linux.Stat
	p  vfs.Path // zero for a file without a place
}

// find fills in what the arguments of statx lead to.
func (x *statxResult) find(t *proc.Thread, fd int32, addr uio.Addr, w vfs.WalkFlags) linux.Errno {
	path, e := readPath(t, addr)
	if e != 0 {
		return e
	}
	if path == "" && w&vfs.EmptyPath != 0 && fd != linux.AT_FDCWD {
		f := t.FDs.Get(fd)
		if f == nil {
			return linux.EBADF
		}
		defer f.Put()
		x.p = f.Path
		x.st, e = statFD(t, fd)
		return e
	}
	if x.p, e = lookupAt(t, fd, path, w); e == 0 {
		if x.p.Asked() {
			x.p.Renew(&t.Ctx, path)
		}
		x.p.Inode().FillStat(&x.st)
	}
	return e
}

// attrBits are the flags of chattr(1) as statx has them.
var attrBits = []struct{ attr, bit uint32 }{
	{linux.FS_IMMUTABLE_FL, linux.STATX_ATTR_IMMUTABLE},
	{linux.FS_APPEND_FL, linux.STATX_ATTR_APPEND},
	{linux.FS_NODUMP_FL, linux.STATX_ATTR_NODUMP},
}

// attributes returns stx_attributes and which of them the file system knows.
func (x *statxResult) attributes() (attrs, known uint64) {
	known = linux.STATX_ATTR_MOUNT_ROOT | linux.STATX_ATTR_AUTOMOUNT | linux.STATX_ATTR_DAX
	if x.p.Zero() {
		return 0, known
	}
	if m := x.p.Mnt; m != nil && m.Root == x.p.Dentry {
		attrs |= linux.STATX_ATTR_MOUNT_ROOT
	}
	fs := x.p.Inode().FS
	if fs.Flags&vfs.FSXattr == 0 {
		return attrs, known
	}
	for _, b := range attrBits {
		if x.p.Inode().Attrs()&b.attr != 0 {
			attrs |= uint64(b.bit)
		}
		known |= uint64(b.bit)
	}
	if fs.Magic == linux.EXT4_SUPER_MAGIC {
		known |= linux.STATX_ATTR_COMPRESSED | linux.STATX_ATTR_ENCRYPTED | linux.STATX_ATTR_VERITY
	}
	return attrs, known
}

// anonMount is the mount that files without a place show.
const anonMount = 1

// encode writes a struct statx; mask is what was asked for.
func (x *statxResult) encode(b []byte, mask uint32) []byte {
	clear(b)
	le, st := binary.LittleEndian, &x.st
	has := uint32(linux.STATX_BASIC_STATS | linux.STATX_MNT_ID)
	var btime linux.Timespec
	if mask&linux.STATX_BTIME != 0 && !x.p.Zero() && x.p.Inode().FS.Flags&vfs.FSXattr != 0 {
		has |= linux.STATX_BTIME
		ns := x.p.Inode().Btime()
		btime = linux.Timespec{Sec: ns / 1e9, Nsec: ns % 1e9}
	}
	attrs, known := x.attributes()
	mount := uint64(anonMount)
	if x.p.Mnt != nil {
		mount = uint64(x.p.Mnt.ID)
	}
	le.PutUint32(b[0:], has)
	le.PutUint32(b[4:], uint32(st.Blksize))
	le.PutUint64(b[8:], attrs)
	le.PutUint32(b[16:], uint32(st.Nlink))
	le.PutUint32(b[20:], st.UID)
	le.PutUint32(b[24:], st.GID)
	le.PutUint16(b[28:], uint16(st.Mode))
	le.PutUint64(b[32:], st.Ino)
	le.PutUint64(b[40:], uint64(st.Size))
	le.PutUint64(b[48:], uint64(st.Blocks))
	le.PutUint64(b[56:], known)
	for i, ts := range [...]linux.Timespec{st.Atime, btime, st.Ctime, st.Mtime} {
		le.PutUint64(b[64+16*i:], uint64(ts.Sec))
		le.PutUint32(b[72+16*i:], uint32(ts.Nsec))
	}
	le.PutUint32(b[128:], linux.Major(st.Rdev))
	le.PutUint32(b[132:], linux.Minor(st.Rdev))
	le.PutUint32(b[136:], linux.Major(st.Dev))
	le.PutUint32(b[140:], linux.Minor(st.Dev))
	le.PutUint64(b[144:], mount)
	return b
}
