package vfs_test

import (
	"testing"
	"time"

	"hardtack/abi/linux"
	"hardtack/kernel/base/clocks"
	"hardtack/kernel/fs/vfs"
)

// When a read makes the access time new: by the mount's policy, the age of the access
// time, and whether the file has changed since.
func TestAccessTimes(t *testing.T) {
	c, ctx := newTree(t)
	const hour = int64(time.Hour)
	for _, x := range []struct {
		name      string
		flags     uint32 // of the mount
		open      uint32 // of the file
		path      string
		at, since int64 // hours ago: the access time, the last change
		want      bool
	}{
		{"read since the change", 0, 0, "/f", 2, 3, false},
		{"changed since", 0, 0, "/f", 3, 2, true},
		{"changed at the same time", 0, 0, "/f", 2, 2, true},
		{"not quite a day", 0, 0, "/f", 23, 30, false},
		{"a day", 0, 0, "/f", 24, 30, true},
		{"years", 0, 0, "/f", 30000, 40000, true},
		{"in the future", 0, 0, "/f", -5, 30, false},
		{"O_NOATIME", 0, linux.O_NOATIME, "/f", 24, 30, false},
		{"noatime", linux.MS_NOATIME, 0, "/f", 24, 3, false},
		{"read-only", linux.MS_RDONLY, 0, "/f", 24, 3, false},
		{"strictatime", linux.MS_STRICTATIME, 0, "/f", 2, 3, true},
		{"strictatime, read-only", linux.MS_STRICTATIME | linux.MS_RDONLY, 0, "/f", 2, 3, false},
		{"nodiratime, a file", linux.MS_NODIRATIME, 0, "/f", 24, 30, true},
		{"nodiratime, a directory", linux.MS_NODIRATIME, 0, "/d", 24, 3, false},
		{"a directory", 0, 0, "/d", 24, 3, true},
		{"a link", 0, 0, "/l", 25, 30, true},
		{"a link that was followed", 0, 0, "/l/", 25, 30, true},
		{"noatime, a link", linux.MS_NOATIME, 0, "/l/", 24, 3, false},
	} {
		ctx.Root().Mnt.Remount(0)
		for _, e := range []linux.Errno{vfs.MkdirAt(c, ctx, nil, "/d", 0o755), vfs.MknodAt(c, ctx, nil, "/f", linux.S_IFREG|0o644, 0), vfs.SymlinkAt(c, ctx, "d", nil, "/l")} {
			if e != 0 && e != linux.EEXIST {
				t.Fatal(e)
			}
		}
		w, _ := vfs.Open(c, ctx, nil, "/f", linux.O_WRONLY, 0)
		c.Vec.InitBytes([]byte("x"))
		w.Ops.Write(c, w, &c.Vec, 0)
		w.Put()
		name, follow := x.path, x.path[len(x.path)-1] == '/'
		if follow {
			name = name[:len(name)-1]
		}
		p, e := vfs.Lookup(c, ctx, nil, name, 0)
		if e != 0 {
			t.Fatal(e)
		}
		now := clocks.Realtime()
		at, since := now-x.at*hour, now-x.since*hour
		p.Inode().Apply(&vfs.Attr{Mask: vfs.AttrAtime | vfs.AttrMtime | vfs.AttrCtime, Atime: at, Mtime: since, Ctime: since})
		ctx.Root().Mnt.Remount(x.flags)
		switch {
		case follow:
			if _, e := vfs.Lookup(c, ctx, nil, x.path, 0); e != 0 {
				t.Fatal(e)
			}
		case name == "/l":
			if _, e := vfs.ReadLink(c, ctx, p); e != 0 {
				t.Fatal(e)
			}
		default:
			f, e := vfs.Open(c, ctx, nil, name, linux.O_RDONLY|x.open, 0)
			if e != 0 {
				t.Fatal(x.name, e)
			}
			if name == "/d" {
				e = f.Ops.(vfs.DirReader).ReadDir(c, f, func(*vfs.Dirent) bool { return true })
			} else {
				c.Vec.InitBytes(make([]byte, 1))
				_, e = f.Ops.Read(c, f, &c.Vec, 0)
			}
			if f.Put(); e != 0 {
				t.Fatal(x.name, e)
			}
		}
		got, _, _ := p.Inode().Times()
		if changed := got != at; changed != x.want || changed && got < now {
			t.Errorf("%s: the access time is %v ago, new: %v, want %v", x.name, time.Duration(clocks.Realtime()-got), changed, x.want)
		}
	}
}
