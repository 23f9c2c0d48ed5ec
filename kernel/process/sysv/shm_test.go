package sysv

import (
	"os"
	"testing"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/creds"
	"hardtack/kernel/base/mem"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/mm/vm"
)

func TestMain(m *testing.M) {
	mem.InitHost(4096)
	s, _ := vm.New()
	s.Release()
	os.Exit(m.Run())
}

func newSpace(t *testing.T) *vm.Space {
	s, e := vm.New()
	if e != 0 {
		t.Fatal(e)
	}
	return s
}

func user(uid uint32) *caller.Ctx {
	c := caller.NewKernelCtx()
	c.SetCred(&creds.Cred{UID: uid, EUID: uid, GID: uid, EGID: uid})
	return c
}

func TestTwoSpacesShareASegment(t *testing.T) {
	before := mem.Available()
	c := caller.NewKernelCtx()
	c.PID = 42
	id, e := ShmGet(c, 1234, 10000, linux.IPC_CREAT|0o600)
	if e != 0 {
		t.Fatal(e)
	}
	if again, e := ShmGet(c, 1234, 0, 0); again != id || e != 0 {
		t.Fatal(again, e)
	}
	if _, e := ShmGet(c, 1234, 100, linux.IPC_CREAT|linux.IPC_EXCL); e != linux.EEXIST {
		t.Fatal(e)
	}
	if _, e := ShmGet(c, 1234, 10001, 0); e != linux.EINVAL {
		t.Fatal(e)
	}
	s1, s2 := newSpace(t), newSpace(t)
	a1, e := ShmAt(c, s1, id, 0, 0)
	if e != 0 {
		t.Fatal(e)
	}
	a2, e := ShmAt(c, s2, id, 0x10000000, linux.SHM_RDONLY)
	if e != 0 || a2 != 0x10000000 {
		t.Fatal(a2, e)
	}
	if _, e := ShmAt(c, s2, id, 0x10000000, 0); e != linux.EINVAL {
		t.Fatal("attached over something:", e)
	}
	s1.CopyOut(uio.Addr(a1+9000), []byte("hello"))
	var b [5]byte
	if s2.CopyIn(b[:], uio.Addr(a2+9000)); string(b[:]) != "hello" {
		t.Fatalf("%q", b)
	}
	if _, e := s2.CopyOut(uio.Addr(a2), b[:]); e != linux.EFAULT {
		t.Fatal("wrote to a read-only attachment")
	}
	if e := s2.Mprotect(c, a2, 4096, 3); e != linux.EACCES {
		t.Fatal(e)
	}
	if e := s1.Madvise(c, a1, 4096, linux.MADV_REMOVE); e != 0 {
		t.Fatal(e)
	}
	s1.CopyOut(uio.Addr(a1), []byte("x"))
	if e := s1.Madvise(c, a1, 4096, linux.MADV_REMOVE); e != 0 {
		t.Fatal(e)
	}
	if s2.CopyIn(b[:1], uio.Addr(a2)); b[0] != 0 {
		t.Fatal("not removed")
	}
	s3, _ := s1.Fork(c)
	if d, _ := ShmStat(c, id); d.Attached != 3 || d.LPID != 42 || d.Size != 10000 {
		t.Fatal(d)
	}
	if e := ShmRemove(c, id); e != 0 {
		t.Fatal(e)
	}
	if d, _ := ShmStat(c, id); d.Perm.Mode&linux.SHM_DEST == 0 {
		t.Fatal("not marked")
	}
	if _, e := ShmGet(c, 1234, 0, 0); e != linux.ENOENT {
		t.Fatal(e)
	}
	if e := ShmDt(c, s1, a1+4096); e != linux.EINVAL {
		t.Fatal(e)
	}
	// A piece unmapped from the middle does not keep shmdt from taking the rest.
	if e := s1.Munmap(c, a1+4096, 4096); e != 0 {
		t.Fatal(e)
	}
	if e := ShmDt(c, s1, a1); e != 0 {
		t.Fatal(e)
	}
	if _, e := s1.CopyIn(b[:], uio.Addr(a1+9000)); e != linux.EFAULT {
		t.Fatal("still there")
	}
	if e := ShmDt(c, s1, a1); e != linux.EINVAL {
		t.Fatal(e)
	}
	s1.Release()
	s2.Release()
	if d, e := ShmStat(c, id); e != 0 || d.Attached != 1 {
		t.Fatal(d, e)
	}
	s3.Release()
	if _, e := ShmStat(c, id); e != linux.EINVAL {
		t.Fatal("still there:", e)
	}
	if n := mem.Available(); n != before {
		t.Fatalf("%d frames before, %d after", before, n)
	}
	// The place is used again, under another number.
	id2, _ := ShmGet(c, linux.IPC_PRIVATE, 1, 0)
	if id2 == id {
		t.Fatal("number reused")
	}
	if _, e := ShmStat(c, id); e != linux.EIDRM {
		t.Fatal(e)
	}
	ShmRemove(c, id2)
}

func TestPermissions(t *testing.T) {
	alice, bob := user(1000), user(1001)
	id, _ := ShmGet(alice, 77, 4096, linux.IPC_CREAT|0o640)
	s := newSpace(t)
	defer s.Release()
	if _, e := ShmAt(bob, s, id, 0, linux.SHM_RDONLY); e != linux.EACCES {
		t.Fatal(e)
	}
	if _, e := ShmGet(bob, 77, 0, 0o444); e != linux.EACCES {
		t.Fatal(e)
	}
	if e := ShmRemove(bob, id); e != linux.EPERM {
		t.Fatal(e)
	}
	if e := ShmChange(alice, id, 1000, 1001, 0o640); e != 0 {
		t.Fatal(e)
	}
	if _, e := ShmAt(bob, s, id, 0, linux.SHM_RDONLY); e != 0 {
		t.Fatal(e)
	}
	if _, e := ShmAt(bob, s, id, 0, 0); e != linux.EACCES {
		t.Fatal(e)
	}
	if e := ShmRemove(alice, id); e != 0 {
		t.Fatal(e)
	}
	if _, e := ShmGet(alice, 1, 0, linux.IPC_CREAT); e != linux.EINVAL {
		t.Fatal(e)
	}
	if _, e := ShmGet(alice, 1, 1<<60, linux.IPC_CREAT); e != linux.ENOMEM {
		t.Fatal(e)
	}
	if _, e := ShmAt(alice, s, -1, 0, 0); e != linux.EINVAL {
		t.Fatal(e)
	}
}

// SHM_LOCK is for the owner, the creator, and who may lock anything.
func TestLock(t *testing.T) {
	owner := user(1000)
	id, e := ShmGet(owner, linux.IPC_PRIVATE, 4096, 0o666)
	if e != 0 {
		t.Fatal(e)
	}
	defer ShmRemove(owner, id)
	if e := ShmLock(user(1001), id, true); e != linux.EPERM {
		t.Error("a stranger:", e)
	}
	if ds, e := ShmStat(owner, id); e != 0 || ds.Perm.Mode&linux.SHM_LOCKED != 0 {
		t.Error(ds.Perm.Mode, e)
	}
	for _, c := range []*caller.Ctx{owner, caller.NewKernelCtx()} {
		if e := ShmLock(c, id, true); e != 0 {
			t.Error(e)
		}
		if ds, e := ShmStat(owner, id); e != 0 || ds.Perm.Mode&linux.SHM_LOCKED == 0 {
			t.Error(ds.Perm.Mode, e)
		}
		if e := ShmLock(c, id, false); e != 0 {
			t.Error(e)
		}
	}
	if e := ShmLock(owner, id+1<<15, true); e != linux.EINVAL && e != linux.EIDRM {
		t.Error("no such segment:", e)
	}
}
