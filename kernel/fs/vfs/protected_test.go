package vfs_test

import (
	"fmt"
	"testing"

	"hardtack/abi/linux"
	"hardtack/kernel/base/settings"
	"hardtack/kernel/fs/vfs"
)

// with sets a setting for the length of a test.
func with(t *testing.T, s *settings.Setting, v int64) {
	old := s.Get()
	s.Set(v)
	t.Cleanup(func() { s.Set(old) })
}

// The settings at all their values, for what others than the owner meet in a sticky
// directory. (test/guest/c/protected.c has the whole table, at the values in force.)
func TestProtected(t *testing.T) {
	root, ctx := newTree(t)
	alice, bob := user(1, 9), user(2, 9)
	for _, d := range []string{"world", "group"} {
		vfs.MkdirAt(root, ctx, nil, "/"+d, 0o700)
		p, _ := vfs.Lookup(root, ctx, nil, "/"+d, 0)
		vfs.Chown(root, p, 0, 9)
		vfs.Chmod(root, p, map[string]uint32{"world": 0o1777, "group": 0o1770}[d])
		for _, n := range []struct {
			name string
			mode uint32
		}{{"file", linux.S_IFREG}, {"fifo", linux.S_IFIFO}} {
			path := "/" + d + "/" + n.name
			if e := vfs.MknodAt(alice, ctx, nil, path, n.mode|0o600, 0); e != 0 {
				t.Fatal(e)
			}
			p, _ := vfs.Lookup(root, ctx, nil, path, 0)
			vfs.Chmod(alice, p, 0o666)
		}
		if e := vfs.SymlinkAt(alice, ctx, "file", nil, "/"+d+"/link"); e != 0 {
			t.Fatal(e)
		}
	}
	check := func(what string, v int64, got, want linux.Errno) {
		t.Helper()
		if got != want {
			t.Errorf("%s at %d: %v, not %v", what, v, got, want)
		}
	}
	refused := func(yes bool) linux.Errno {
		if yes {
			return linux.EACCES
		}
		return 0
	}
	for v := range int64(3) {
		with(t, &settings.ProtectedRegular, v)
		with(t, &settings.ProtectedSymlinks, v&1)
		with(t, &settings.ProtectedHardlinks, v&1)
		create := &vfs.OpenHow{Flags: linux.O_CREAT | linux.O_RDWR, Mode: 0o600}
		check("a file", v, open1(bob, ctx, "/world/file", create), refused(v >= 1))
		check("a file of a group", v, open1(bob, ctx, "/group/file", create), refused(v >= 2))
		check("one's own", v, open1(alice, ctx, "/world/file", create), 0)
		check("without O_CREAT", v, open1(bob, ctx, "/world/file", &vfs.OpenHow{Flags: linux.O_RDWR}), 0)
		_, e := vfs.Lookup(bob, ctx, nil, "/world/link", vfs.FollowLast)
		check("a link", v, e, refused(v&1 != 0))
		_, e = vfs.Lookup(bob, ctx, nil, "/group/link", vfs.FollowLast)
		check("a link of a group", v, e, 0)
		want := linux.Errno(0)
		if v&1 != 0 {
			want = linux.EPERM
		}
		name := fmt.Sprint("/world/new", v)
		check("a hard link to a FIFO", v, vfs.LinkAt(bob, ctx, nil, "/world/fifo", nil, name, 0), want)
		check("a hard link to a file", v, vfs.LinkAt(bob, ctx, nil, "/world/file", nil, name+"f", 0), 0)
	}
}

// Nobody takes set-id bits from a program that is not theirs by changing nothing.
func TestChownOfNothing(t *testing.T) {
	root, ctx := newTree(t)
	vfs.MknodAt(root, ctx, nil, "/su", linux.S_IFREG, 0)
	p, _ := vfs.Lookup(root, ctx, nil, "/su", 0)
	vfs.Chmod(root, p, 0o4755)
	if e := vfs.Chown(user(1, 1), p, vfs.NoID, vfs.NoID); e != linux.EPERM || p.Inode().Mode()&0o7777 != 0o4755 {
		t.Errorf("%v, %o", e, p.Inode().Mode())
	}
	vfs.Chmod(root, p, 0o755)
	if e := vfs.Chown(user(1, 1), p, vfs.NoID, vfs.NoID); e != 0 {
		t.Error(e)
	}
}
