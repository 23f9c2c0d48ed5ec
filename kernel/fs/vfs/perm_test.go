package vfs_test

import (
	"fmt"
	"testing"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/creds"
	"hardtack/kernel/fs/vfs"
)

func user(uid, gid uint32, groups ...uint32) *caller.Ctx {
	c := caller.NewKernelCtx()
	c.SetCred(&creds.Cred{UID: uid, EUID: uid, SUID: uid, FSUID: uid, GID: gid, EGID: gid, SGID: gid, FSGID: gid, Groups: groups})
	return c
}

// Every mode of a file and of a directory, for owner, group, member and
// stranger, with and without the capabilities, against the rules written out.
func TestPermissionMatrix(t *testing.T) {
	root, ctx := newTree(t)
	who := map[string]*caller.Ctx{"owner": user(1, 9), "group": user(2, 1), "member": user(2, 9, 4, 1), "stranger": user(3, 3)}
	for _, dir := range []bool{false, true} {
		path := fmt.Sprint("/x", dir)
		if dir {
			vfs.MkdirAt(root, ctx, nil, path, 0)
		} else {
			vfs.MknodAt(root, ctx, nil, path, linux.S_IFREG, 0)
		}
		p, _ := vfs.Lookup(root, ctx, nil, path, 0)
		vfs.Chown(root, p, 1, 1)
		for mode := uint32(0); mode < 0o1000; mode++ {
			vfs.Chmod(root, p, mode)
			for name, c := range who {
				shift := map[string]uint32{"owner": 6, "group": 3, "member": 3, "stranger": 0}[name]
				for want := vfs.Access(1); want < 8; want++ {
					ok := mode>>shift&uint32(want) == uint32(want)
					if got := vfs.Permission(c, p.Inode(), want) == 0; got != ok {
						t.Fatalf("dir %v mode %o %s wants %d: %v", dir, mode, name, want, got)
					}
				}
			}
			for want := vfs.Access(1); want < 8; want++ {
				ok := dir || want&vfs.MayExec == 0 || mode&0o111 != 0
				if got := vfs.Permission(root, p.Inode(), want) == 0; got != ok {
					t.Fatalf("dir %v mode %o root wants %d: %v", dir, mode, want, got)
				}
			}
		}
	}
}

func TestOwnership(t *testing.T) {
	root, ctx := newTree(t)
	alice, bob := user(1, 1, 7), user(2, 2)
	vfs.MkdirAt(root, ctx, nil, "/tmp", 0o1777)
	tmp, _ := vfs.Lookup(root, ctx, nil, "/tmp", 0)
	vfs.Chmod(root, tmp, 0o1777)
	must := func(what string, got, want linux.Errno) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	mk := func(c *caller.Ctx, p string, mode uint32) vfs.Path {
		must("mknod "+p, vfs.MknodAt(c, ctx, nil, p, linux.S_IFREG|mode, 0), 0)
		x, _ := vfs.Lookup(root, ctx, nil, p, 0)
		return x
	}
	a := mk(alice, "/tmp/a", 0o644)
	mk(bob, "/tmp/b", 0o644)
	must("unlink in a sticky directory", vfs.UnlinkAt(bob, ctx, nil, "/tmp/a"), linux.EPERM)
	must("rename in a sticky directory", vfs.RenameAt(bob, ctx, nil, "/tmp/b", nil, "/tmp/a", 0), linux.EPERM)
	must("chmod", vfs.Chmod(bob, a, 0o777), linux.EPERM)
	must("chown", vfs.Chown(alice, a, 2, vfs.NoID), linux.EPERM)
	must("chgrp to a foreign group", vfs.Chown(alice, a, vfs.NoID, 2), linux.EPERM)
	must("chgrp to an own group", vfs.Chown(alice, a, vfs.NoID, 7), 0)
	must("utimes to now with no rights", vfs.Utimens(bob, a, &vfs.Times{SetAtime: true, SetMtime: true, AtimeNow: true, MtimeNow: true}), linux.EACCES)
	must("utimes", vfs.Utimens(bob, a, &vfs.Times{SetMtime: true, Mtime: 5}), linux.EPERM)
	must("truncate", vfs.Truncate(bob, a, 0), linux.EACCES)
	must("mknod of a device", vfs.MknodAt(alice, ctx, nil, "/tmp/dev", linux.S_IFCHR|0o600, 0x103), linux.EPERM)

	// Changing the owner, or writing as another, takes the set-id bits away.
	must("chmod", vfs.Chmod(alice, a, 0o6755), 0)
	must("chown", vfs.Chown(root, a, 1, 1), 0)
	if m := a.Inode().Mode() & 0o7777; m != 0o755 {
		t.Errorf("after chown: %o", m)
	}
	vfs.Chmod(root, a, 0o4777)
	f, e := vfs.Open(bob, ctx, nil, "/tmp/a", linux.O_WRONLY, 0)
	must("open", e, 0)
	bob.Vec.InitBytes([]byte("x"))
	f.Ops.Write(bob, f, &bob.Vec, 0)
	f.Put()
	if m := a.Inode().Mode() & 0o7777; m != 0o777 {
		t.Errorf("after a write: %o", m)
	}

	// A set-gid directory passes its group on.
	vfs.MkdirAt(root, ctx, nil, "/shared", 0o777)
	sh, _ := vfs.Lookup(root, ctx, nil, "/shared", 0)
	vfs.Chown(root, sh, 0, 7)
	vfs.Chmod(root, sh, 0o2777)
	g := mk(bob, "/shared/f", 0o2674)
	must("mkdir", vfs.MkdirAt(bob, ctx, nil, "/shared/d", 0o755), 0)
	d, _ := vfs.Lookup(root, ctx, nil, "/shared/d", 0)
	if g.Inode().GID() != 7 || d.Inode().GID() != 7 || d.Inode().Mode()&linux.S_ISGID == 0 {
		t.Error("group is not passed on")
	}
	if g.Inode().Mode()&linux.S_ISGID != 0 {
		t.Error("set-gid for a group that the creator is not in")
	}

	// Walks need search permission, names write permission.
	vfs.MkdirAt(alice, ctx, nil, "/tmp/private", 0o700)
	mk(alice, "/tmp/private/f", 0o666)
	_, e = vfs.Lookup(bob, ctx, nil, "/tmp/private/f", 0)
	must("walk through a private directory", e, linux.EACCES)
	_, e = vfs.Open(bob, ctx, nil, "/shared/../tmp/private/g", linux.O_CREAT|linux.O_RDWR, 0o600)
	must("create in a private directory", e, linux.EACCES)
	must("create in /", vfs.MkdirAt(bob, ctx, nil, "/mine", 0o755), linux.EACCES)
	must("exec without x", open1(bob, ctx, "/tmp/b", &vfs.OpenHow{Exec: true, Walk: vfs.FollowLast}), linux.EACCES)
	must("exec without any x as root", open1(root, ctx, "/tmp/b", &vfs.OpenHow{Exec: true, Walk: vfs.FollowLast}), linux.EACCES)
}

func open1(c *caller.Ctx, ctx *vfs.FSContext, path string, how *vfs.OpenHow) linux.Errno {
	f, e := vfs.OpenWith(c, ctx, nil, path, how)
	if e == 0 {
		f.Put()
	}
	return e
}

func TestOpenFlags(t *testing.T) {
	c, ctx := newTree(t)
	vfs.MkdirAt(c, ctx, nil, "/d", 0o755)
	vfs.MknodAt(c, ctx, nil, "/f", linux.S_IFREG|0o644, 0)
	vfs.SymlinkAt(c, ctx, "f", nil, "/l")
	vfs.SymlinkAt(c, ctx, "d", nil, "/ld")
	vfs.SymlinkAt(c, ctx, "nowhere", nil, "/dangling")
	vfs.SymlinkAt(c, ctx, "loop", nil, "/loop")
	vfs.SymlinkAt(c, ctx, "/d", nil, "/abs")
	vfs.MknodAt(c, ctx, nil, "/s", linux.S_IFSOCK|0o644, 0)
	for _, x := range []struct {
		path  string
		flags uint32
		walk  vfs.WalkFlags
		want  linux.Errno
	}{
		{"", 0, 0, linux.ENOENT},
		{"/f/", 0, 0, linux.ENOTDIR},
		{"/f/x", 0, 0, linux.ENOTDIR},
		{"/d", linux.O_RDWR, 0, linux.EISDIR},
		{"/d", linux.O_RDONLY | linux.O_TRUNC, 0, linux.EISDIR},
		{"/d", linux.O_CREAT, 0, linux.EISDIR},
		{"/new/", linux.O_CREAT, 0, linux.EISDIR},
		{"/f/", linux.O_CREAT, 0, linux.EISDIR},
		{"/", linux.O_CREAT, 0, linux.EISDIR},
		{"/d/.", linux.O_DIRECTORY, 0, 0},
		{"/f", linux.O_DIRECTORY, 0, linux.ENOTDIR},
		{"/f", linux.O_CREAT | linux.O_EXCL, 0, linux.EEXIST},
		{"/dangling", linux.O_CREAT | linux.O_EXCL, 0, linux.EEXIST},
		{"/dangling", 0, 0, linux.ENOENT},
		{"/l", linux.O_NOFOLLOW, 0, linux.ELOOP},
		{"/l", linux.O_NOFOLLOW | linux.O_PATH, 0, 0},
		{"/ld/", linux.O_NOFOLLOW | linux.O_DIRECTORY, 0, 0},
		{"/loop", 0, 0, linux.ELOOP},
		{"/s", 0, 0, linux.ENXIO},
		{"/s", linux.O_PATH, 0, 0},
		{"/l", 0, vfs.NoSymlinks, linux.ELOOP},
		{"/f", 0, vfs.Beneath, linux.EXDEV},
		{"f", 0, vfs.Beneath, 0},
		{"../f", 0, vfs.Beneath, linux.EXDEV},
		{"d/../f", 0, vfs.Beneath, 0},
		{"abs", 0, vfs.Beneath, linux.EXDEV},
		{"abs", 0, vfs.InRoot, 0},
		{"/../../f", 0, vfs.InRoot, 0},
		{"dangling", linux.O_CREAT | linux.O_RDWR, 0, 0}, // makes what it points to
		{"/nowhere", 0, 0, 0},
		{"/d", linux.O_TMPFILE, 0, linux.EINVAL},
		{"/d", linux.O_TMPFILE | linux.O_RDWR, 0, 0},
		{"/f", linux.O_TMPFILE | linux.O_RDWR, 0, linux.ENOTDIR},
	} {
		if e := open1(c, ctx, x.path, &vfs.OpenHow{Flags: x.flags, Mode: 0o644, Walk: x.walk}); e != x.want {
			t.Errorf("open %q flags %o walk %x: %v, want %v", x.path, x.flags, x.walk, e, x.want)
		}
	}
	// O_TMPFILE's file can get a name, once; with O_EXCL never.
	f, _ := vfs.Open(c, ctx, nil, "/d", linux.O_TMPFILE|linux.O_RDWR, 0o600)
	if e := vfs.LinkAt(c, ctx, f, "", nil, "/named", vfs.EmptyPath); e != 0 {
		t.Error(e)
	}
	if n := f.Path.Inode().Nlink(); n != 1 {
		t.Error(n, "links")
	}
	f.Put()
	f, _ = vfs.Open(c, ctx, nil, "/d", linux.O_TMPFILE|linux.O_RDWR|linux.O_EXCL, 0o600)
	if e := vfs.LinkAt(c, ctx, f, "", nil, "/named2", vfs.EmptyPath); e != linux.ENOENT {
		t.Error(e)
	}
	f.Put()
	// Names.
	long := make([]byte, 256)
	for i := range long {
		long[i] = 'n'
	}
	if e := vfs.MkdirAt(c, ctx, nil, "/"+string(long), 0o755); e != linux.ENAMETOOLONG {
		t.Error(e)
	}
	if _, e := vfs.Lookup(c, ctx, nil, "/"+string(long), 0); e != linux.ENAMETOOLONG {
		t.Error(e)
	}
	if e := vfs.MkdirAt(c, ctx, nil, "/"+string(long[:255]), 0o755); e != 0 {
		t.Error(e)
	}
}

// A file is written or run, not both.
func TestBusyText(t *testing.T) {
	c, ctx := newTree(t)
	w, _ := vfs.Open(c, ctx, nil, "/x", linux.O_CREAT|linux.O_RDWR, 0o755)
	if e := open1(c, ctx, "/x", &vfs.OpenHow{Exec: true}); e != linux.ETXTBSY {
		t.Error("run while written:", e)
	}
	w.Put()
	x, e := vfs.OpenExec(c, ctx, nil, "/x", vfs.FollowLast)
	if e != 0 {
		t.Fatal(e)
	}
	p := x.Path
	for _, flags := range []uint32{linux.O_WRONLY, linux.O_RDONLY | linux.O_TRUNC} {
		if e := open1(c, ctx, "/x", &vfs.OpenHow{Flags: flags}); e != linux.ETXTBSY {
			t.Error("written while run:", e)
		}
	}
	if e := vfs.Truncate(c, p, 0); e != linux.ETXTBSY {
		t.Error("truncated while run:", e)
	}
	if e := open1(c, ctx, "/x", &vfs.OpenHow{}); e != 0 {
		t.Error(e)
	}
	x.Put()
	if e := open1(c, ctx, "/x", &vfs.OpenHow{Flags: linux.O_RDWR}); e != 0 {
		t.Error("written after it was run:", e)
	}
}

// ".." stays below a changed root, and mounts are crossed both ways.
func TestChrootAndMounts(t *testing.T) {
	c, ctx := newTree(t)
	for _, d := range []string{"/jail", "/jail/in", "/m"} {
		vfs.MkdirAt(c, ctx, nil, d, 0o755)
	}
	_, other := newTree(t)
	ofs := other.Root().Mnt.FS
	m, _ := vfs.Lookup(c, ctx, nil, "/m", 0)
	if _, e := m.Namespace().Mount(ofs, ofs.Root, "other", m, 0); e != 0 {
		t.Fatal(e)
	}
	vfs.MkdirAt(c, ctx, nil, "/m/sub", 0o755)
	p, e := vfs.Lookup(c, ctx, nil, "/m/sub/../../m/sub", 0)
	if s, _ := p.String(ctx.Root()); e != 0 || s != "/m/sub" {
		t.Fatal(s, e)
	}
	if e := vfs.RmdirAt(c, ctx, nil, "/m"); e != linux.EBUSY {
		t.Fatal(e)
	}
	if e := vfs.RenameAt(c, ctx, nil, "/m/sub", nil, "/sub", 0); e != linux.EXDEV {
		t.Fatal(e)
	}
	if _, e := vfs.OpenWith(c, ctx, nil, "m/sub", &vfs.OpenHow{Walk: vfs.NoXDev}); e != linux.EXDEV {
		t.Fatal(e)
	}
	jail := ctx.Clone()
	in, _ := vfs.Lookup(c, ctx, nil, "/jail", 0)
	if e := jail.Chroot(c, in); e != 0 {
		t.Fatal(e)
	}
	jail.Chdir(c, in)
	p, e = vfs.Lookup(c, jail, nil, "/../../in/../..", 0)
	if e != 0 || p != in {
		t.Fatal(e)
	}
	if e := jail.Chroot(user(1, 1), in); e != linux.EPERM {
		t.Fatal(e)
	}
	if _, ok := m.String(jail.Root()); ok {
		t.Fatal("what is outside can be reached")
	}
}
