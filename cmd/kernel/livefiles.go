package main

import (
	"context"

	"hardtack/abi/linux"
	proto "hardtack/idl/live"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/fs/vfs"
)

// Files for the host: what system calls of root's would do, by path.

func (v *visitors) Stat(_ context.Context, in proto.StatCall) (out proto.StatReply, err error) {
	c := caller.NewKernelCtx()
	var flags vfs.WalkFlags
	if in.Follow {
		flags = vfs.FollowLast
	}
	p, e := vfs.Lookup(c, v.root, nil, in.Path, flags)
	if e != 0 {
		return proto.StatReply{Errno: uint32(e)}, nil
	}
	var st linux.Stat
	p.Dentry.Inode.FillStat(&st)
	out = proto.StatReply{Mode: st.Mode, UID: st.UID, GID: st.GID, Size: uint64(st.Size), Mtime: uint64(st.Mtime.Nano())}
	if st.Mode&linux.S_IFMT == linux.S_IFLNK {
		if out.Target, e = vfs.ReadLink(c, v.root, p); e != 0 {
			return proto.StatReply{Errno: uint32(e)}, nil
		}
	}
	return out, nil
}

func (v *visitors) List(_ context.Context, in proto.ListCall) (out proto.ListReply, err error) {
	c := caller.NewKernelCtx()
	f, e := vfs.Open(c, v.root, nil, in.Path, linux.O_RDONLY|linux.O_DIRECTORY|linux.O_NONBLOCK, 0)
	if e != 0 {
		return proto.ListReply{Errno: uint32(e)}, nil
	}
	defer f.Put()
	r, ok := f.Ops.(vfs.DirReader)
	if !ok || int64(in.Place) < 0 {
		return proto.ListReply{Errno: uint32(linux.ENOTDIR)}, nil
	}
	f.PosMu.Lock()
	defer f.PosMu.Unlock()
	f.Pos = int64(in.Place)
	full := false
	e = r.ReadDir(c, f, func(d *vfs.Dirent) bool {
		if full = len(out.Names)+len(d.Name)+1 > chunk; full {
			return false
		}
		if d.Name != "." && d.Name != ".." {
			out.Names = append(append(out.Names, d.Name...), 0)
		}
		return true
	})
	if e != 0 {
		return proto.ListReply{Errno: uint32(e)}, nil
	}
	if full {
		out.Next = uint64(f.Pos)
	}
	return out, nil
}

func (v *visitors) Read(_ context.Context, in proto.ReadCall) (out proto.ReadReply, err error) {
	c := caller.NewKernelCtx()
	f, e := vfs.Open(c, v.root, nil, in.Path, linux.O_RDONLY|linux.O_NONBLOCK|linux.O_NOCTTY, 0)
	if e != 0 {
		return proto.ReadReply{Errno: uint32(e)}, nil
	}
	defer f.Put()
	if e := regular(f, in.At); e != 0 {
		return proto.ReadReply{Errno: uint32(e)}, nil
	}
	buf := make([]byte, chunk)
	n, e := f.Ops.Read(c, f, uio.Bytes(buf), int64(in.At))
	if e != 0 {
		return proto.ReadReply{Errno: uint32(e)}, nil
	}
	return proto.ReadReply{Data: buf[:n]}, nil
}

// regular refuses what is no regular file, and places that no file has.
func regular(f *vfs.File, at uint64) linux.Errno {
	switch {
	case f.Path.Zero() || f.Path.Dentry.Inode.Type() == linux.S_IFDIR:
		return linux.EISDIR
	case f.Path.Dentry.Inode.Type() != linux.S_IFREG:
		return linux.EINVAL
	case at > 1<<62:
		return linux.EFBIG
	}
	return 0
}

func (v *visitors) Write(_ context.Context, in proto.WriteCall) (out proto.WriteReply, err error) {
	c := caller.NewKernelCtx()
	flags := uint32(linux.O_WRONLY | linux.O_NONBLOCK | linux.O_NOCTTY)
	if in.Fresh {
		flags |= linux.O_CREAT | linux.O_TRUNC
	}
	f, e := vfs.Open(c, v.root, nil, in.Path, flags, 0o600)
	if e != 0 {
		return proto.WriteReply{Errno: uint32(e)}, nil
	}
	defer f.Put()
	if e = regular(f, in.At); e == 0 {
		var done, n int
		for done < len(in.Data) && e == 0 {
			n, e = f.Ops.Write(c, f, uio.Bytes(in.Data[done:]), int64(in.At)+int64(done))
			if done += n; n == 0 && e == 0 {
				e = linux.EIO
			}
		}
	}
	return proto.WriteReply{Errno: uint32(e)}, nil
}

func (v *visitors) Make(_ context.Context, in proto.MakeCall) (out proto.MakeReply, err error) {
	return proto.MakeReply{Errno: uint32(v.make(caller.NewKernelCtx(), &in))}, nil
}

func (v *visitors) make(c *caller.Ctx, in *proto.MakeCall) linux.Errno {
	var e linux.Errno
	switch in.Mode & linux.S_IFMT {
	case linux.S_IFDIR:
		if e = vfs.MkdirAt(c, v.root, nil, in.Path, in.Mode&0o7777); e == linux.EEXIST {
			e = 0
		}
	case linux.S_IFLNK:
		e = vfs.SymlinkAt(c, v.root, in.Target, nil, in.Path)
		if e == linux.EEXIST {
			if e = vfs.UnlinkAt(c, v.root, nil, in.Path); e == 0 {
				e = vfs.SymlinkAt(c, v.root, in.Target, nil, in.Path)
			}
		}
	case linux.S_IFREG:
	default:
		e = linux.EINVAL
	}
	if e != 0 {
		return e
	}
	p, e := vfs.Lookup(c, v.root, nil, in.Path, 0)
	if e != 0 {
		return e
	}
	if p.Dentry.Inode.Type() != in.Mode&linux.S_IFMT {
		if in.Mode&linux.S_IFMT == linux.S_IFDIR {
			return linux.ENOTDIR
		}
		return linux.EINVAL
	}
	if e = vfs.Chown(c, p, in.UID, in.GID); e != 0 {
		return e
	}
	if in.Mode&linux.S_IFMT != linux.S_IFLNK {
		if e = vfs.Chmod(c, p, in.Mode&0o7777); e != 0 {
			return e
		}
	}
	return vfs.Utimens(c, p, &vfs.Times{Atime: int64(in.Mtime), Mtime: int64(in.Mtime), SetAtime: true, SetMtime: true})
}
