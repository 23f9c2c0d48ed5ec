package tmpfs

import (
	"strconv"
	"strings"

	"hardtack/abi/linux"
	"hardtack/kernel/base/mem"
	"hardtack/kernel/fs/vfs"
)

// Type is the file system that mount(2) makes, as "tmpfs" and as "ramfs".
var Type = vfs.FSType{Make: makeFS, Reconfigure: reconfigure}

func makeFS(data string) (*vfs.FileSystem, linux.Errno) {
	var o Options
	if e := o.parse(data); e != 0 {
		return nil, e
	}
	return New(o).FileSystem, 0
}

func reconfigure(fs *vfs.FileSystem, data string) linux.Errno {
	d, ok := fs.Root.Inode.Node.(*dir)
	if !ok {
		return linux.EINVAL
	}
	var o Options
	if e := o.parse(data); e != 0 {
		return e
	}
	if o.MaxPages != 0 {
		if o.MaxPages < d.fs.pages.Load() {
			return linux.EINVAL
		}
		d.fs.maxPages.Store(o.MaxPages)
	}
	if o.MaxInodes != 0 {
		if o.MaxInodes < d.fs.inodes.Load() {
			return linux.EINVAL
		}
		d.fs.maxInodes.Store(o.MaxInodes)
	}
	return 0
}

// parse reads the options of mount: size, nr_blocks, nr_inodes, mode, uid, gid.
func (o *Options) parse(data string) linux.Errno {
	for opt := range strings.SplitSeq(data, ",") {
		key, val, _ := strings.Cut(opt, "=")
		var n int64
		ok := true
		switch key {
		case "size", "nr_blocks", "nr_inodes":
			n, ok = parseSize(val, key == "size")
		case "mode":
			v, err := strconv.ParseUint(val, 8, 12)
			n, ok = int64(v), err == nil
		case "uid", "gid":
			v, err := strconv.ParseUint(val, 10, 32)
			n, ok = int64(v), err == nil
		case "", "noswap", "huge", "mpol", "inode32", "inode64":
			continue
		default:
			return linux.EINVAL
		}
		if !ok {
			return linux.EINVAL
		}
		switch key {
		case "size":
			o.MaxPages = (n + pageMask) / mem.PageSize
		case "nr_blocks":
			o.MaxPages = n
		case "nr_inodes":
			o.MaxInodes = n
		case "mode":
			o.Mode = uint32(n)
		case "uid":
			o.UID = uint32(n)
		case "gid":
			o.GID = uint32(n)
		}
	}
	return 0
}

// parseSize reads a number with k, m, g, or for a size % of memory.
func parseSize(s string, percent bool) (int64, bool) {
	shift, part := 0, false
	if s != "" {
		switch s[len(s)-1] {
		case 'k', 'K':
			shift = 10
		case 'm', 'M':
			shift = 20
		case 'g', 'G':
			shift = 30
		case '%':
			part = percent
			if !part {
				return 0, false
			}
		}
		if shift != 0 || part {
			s = s[:len(s)-1]
		}
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 0 || n > 1<<62>>shift {
		return 0, false
	}
	if part {
		if n > 100 {
			return 0, false
		}
		return int64(mem.Total()) * mem.PageSize / 100 * n, true
	}
	return n << shift, true
}
