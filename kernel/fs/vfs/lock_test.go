package vfs_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/creds"
	"hardtack/kernel/fs/vfs"
)

func lock(kind int16, start, end int64, owner any) *vfs.RecordLock {
	return &vfs.RecordLock{Type: kind, Start: start, End: end, Owner: owner, PID: 1}
}

// held lists, byte by byte, who must wait for what: w for any lock, r for a
// write lock only, - for none.
func held(i *vfs.Inode, n int64) string {
	b := make([]byte, n)
	for k := range b {
		l := lock(linux.F_RDLCK, int64(k), int64(k), "nobody")
		w := lock(linux.F_WRLCK, int64(k), int64(k), "nobody")
		i.GetLock(l)
		i.GetLock(w)
		switch {
		case l.Type != linux.F_UNLCK:
			b[k] = 'w'
		case w.Type != linux.F_UNLCK:
			b[k] = 'r'
		default:
			b[k] = '-'
		}
	}
	return string(b)
}

func TestRecordLocks(t *testing.T) {
	c, ctx := newTree(t)
	f, _ := vfs.Open(c, ctx, nil, "/f", linux.O_CREAT|linux.O_RDWR, 0o644)
	defer f.Put()
	i := f.Path.Inode()
	for _, x := range []struct {
		l    *vfs.RecordLock
		want linux.Errno
		held string
	}{
		{lock(linux.F_RDLCK, 0, 5, "a"), 0, "rrrrrr----"},
		{lock(linux.F_WRLCK, 2, 3, "a"), 0, "rrwwrr----"},
		{lock(linux.F_RDLCK, 4, 8, "b"), 0, "rrwwrrrrr-"},
		{lock(linux.F_WRLCK, 5, 5, "b"), linux.EAGAIN, "rrwwrrrrr-"},
		{lock(linux.F_WRLCK, 8, 9, "b"), 0, "rrwwrrrrww"},
		{lock(linux.F_UNLCK, 1, 4, "a"), 0, "r---rrrrww"},
		{lock(linux.F_UNLCK, 0, 1<<63-1, "b"), 0, "r----r----"},
		{lock(linux.F_RDLCK, 1, 4, "a"), 0, "rrrrrr----"}, // joins
		{lock(linux.F_UNLCK, 0, 1<<63-1, "a"), 0, "----------"},
	} {
		if e := i.SetLock(c, x.l, false); e != x.want {
			t.Fatalf("%+v: %v", x.l, e)
		}
		if got := held(i, 10); got != x.held {
			t.Fatalf("%+v: %s, want %s", x.l, got, x.held)
		}
	}
}

// Random locks of three owners against an array of bytes.
func TestRecordLocksModel(t *testing.T) {
	c, ctx := newTree(t)
	const size = 24
	owners := []string{"a", "b", "c"}
	rapid.Check(t, func(t *rapid.T) {
		f, _ := vfs.Open(c, ctx, nil, "/m", linux.O_CREAT|linux.O_RDWR, 0o644)
		defer f.Put()
		i := f.Path.Inode()
		var bytes [3][size]int16
		for k := range bytes {
			for at := range bytes[k] {
				bytes[k][at] = linux.F_UNLCK
			}
			i.SetLock(c, lock(linux.F_UNLCK, 0, 1<<63-1, owners[k]), false)
		}
		t.Repeat(map[string]func(*rapid.T){
			"lock": func(t *rapid.T) {
				who := rapid.IntRange(0, 2).Draw(t, "who")
				kind := rapid.SampledFrom([]int16{linux.F_RDLCK, linux.F_WRLCK, linux.F_UNLCK}).Draw(t, "kind")
				from := rapid.IntRange(0, size-1).Draw(t, "from")
				to := rapid.IntRange(from, size-1).Draw(t, "to")
				want := linux.Errno(0)
				for k := range bytes {
					for at := from; at <= to; at++ {
						if b := bytes[k][at]; k != who && kind != linux.F_UNLCK && b != linux.F_UNLCK && (b == linux.F_WRLCK || kind == linux.F_WRLCK) {
							want = linux.EAGAIN
						}
					}
				}
				if e := i.SetLock(c, lock(kind, int64(from), int64(to), owners[who]), false); e != want {
					t.Fatal(e, want)
				}
				for at := from; at <= to && want == 0; at++ {
					bytes[who][at] = kind
				}
			},
			"": func(t *rapid.T) {
				got := held(i, size)
				for at := range size {
					want := byte('-')
					for k := range bytes {
						if bytes[k][at] == linux.F_RDLCK {
							want = 'r'
						} else if bytes[k][at] == linux.F_WRLCK {
							want = 'w'
						}
					}
					if got[at] != want {
						t.Fatalf("byte %d: %s, want %c", at, got, want)
					}
				}
			},
		})
	})
}

func TestBlockingLocks(t *testing.T) {
	c, ctx := newTree(t)
	f, _ := vfs.Open(c, ctx, nil, "/f", linux.O_CREAT|linux.O_RDWR, 0o644)
	defer f.Put()
	i := f.Path.Inode()
	i.SetLock(c, lock(linux.F_WRLCK, 0, 0, "a"), false)
	i.SetLock(c, lock(linux.F_WRLCK, 1, 1, "b"), false)
	type answer struct {
		owner string
		at    int64
		e     linux.Errno
	}
	got := make(chan answer, 2)
	other, third := caller.NewKernelCtx(), caller.NewKernelCtx()
	go func() { got <- answer{"a", 0, i.SetLock(other, lock(linux.F_WRLCK, 1, 1, "a"), true)} }()
	go func() { got <- answer{"b", 1, i.SetLock(third, lock(linux.F_WRLCK, 0, 0, "b"), true)} }()
	second := <-got // whoever of both came second is told, and gives up what it has
	if second.e != linux.EDEADLK {
		t.Fatal(second.e)
	}
	i.SetLock(c, lock(linux.F_UNLCK, second.at, second.at, second.owner), false)
	if first := <-got; first.e != 0 {
		t.Fatal(first.e)
	}
	go func() { got <- answer{"c", 0, i.SetLock(other, lock(linux.F_RDLCK, 0, 0, "c"), true)} }()
	time.Sleep(5 * time.Millisecond)
	other.SetInterrupted(true)
	if x := <-got; x.e != linux.ERESTARTSYS {
		t.Fatal(x.e)
	}
}

// Closing any descriptor drops the process's record locks; flock goes with the
// open file only.
func TestLocksEndWithFiles(t *testing.T) {
	c, ctx := newTree(t)
	table := vfs.NewFDTable(&creds.RootCred)
	open := func() int32 {
		f, _ := vfs.Open(c, ctx, nil, "/f", linux.O_CREAT|linux.O_RDWR, 0o644)
		fd, _ := table.Add(f, 0, 100, false)
		return fd
	}
	a, b := open(), open()
	fa, fb := table.Get(a), table.Get(b)
	fa.Put()
	fb.Put()
	i := fa.Path.Inode()
	i.SetLock(c, lock(linux.F_WRLCK, 0, 0, table), false)
	if e := fa.Flock(c, linux.LOCK_EX); e != 0 {
		t.Fatal(e)
	}
	if e := fb.Flock(c, linux.LOCK_SH|linux.LOCK_NB); e != linux.EAGAIN {
		t.Fatal(e)
	}
	fa.Get()
	table.Close(c, a)
	if held(i, 1) != "-" {
		t.Fatal("the record lock outlives close")
	}
	if e := fb.Flock(c, linux.LOCK_SH|linux.LOCK_NB); e != linux.EAGAIN {
		t.Fatal("flock ends before the open file:", e)
	}
	fa.Put()
	if e := fb.Flock(c, linux.LOCK_SH|linux.LOCK_NB); e != 0 {
		t.Fatal(e)
	}
	i.SetLock(c, lock(linux.F_WRLCK, 0, 0, fb), false)
	table.Release(c)
	if held(i, 1) != "-" {
		t.Fatal("the open file's lock outlives it")
	}
}

// A lock that is unlocked in the middle is two: a user gets no more than the limit that
// way, and leaves others theirs.
func TestUnlockSplits(t *testing.T) {
	c, ctx := newTree(t)
	f, _ := vfs.Open(c, ctx, nil, "/f", linux.O_CREAT|linux.O_RDWR, 0o644)
	defer f.Put()
	i := f.Path.Inode()
	user := caller.NewKernelCtx()
	user.SetCred(&creds.Cred{UID: 1000})
	if e := i.SetLock(user, lock(linux.F_RDLCK, 0, 1<<40, "a"), false); e != 0 {
		t.Fatal(e)
	}
	n := int64(0)
	for ; n < 1<<15; n++ {
		if e := i.SetLock(user, lock(linux.F_UNLCK, 2*n+1, 2*n+1, "a"), false); e != 0 {
			if e != linux.ENOLCK {
				t.Fatal(e)
			}
			break
		}
	}
	if n != 1<<14-1 {
		t.Errorf("%d splits", n)
	}
	if e := i.SetLock(user, lock(linux.F_RDLCK, 1<<50, 1<<50, "b"), false); e != linux.ENOLCK {
		t.Errorf("one more: %v", e)
	}
	other := caller.NewKernelCtx()
	other.SetCred(&creds.Cred{UID: 1001})
	if e := i.SetLock(other, lock(linux.F_RDLCK, 0, 10, "c"), false); e != 0 {
		t.Errorf("another user: %v", e)
	}
	for _, owner := range []string{"a", "c"} {
		if e := i.SetLock(user, lock(linux.F_UNLCK, 0, 1<<63-1, owner), false); e != 0 {
			t.Error(e)
		}
	}
}
