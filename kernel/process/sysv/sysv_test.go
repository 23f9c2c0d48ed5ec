package sysv

import (
	"testing"
	"time"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/creds"
	"hardtack/kernel/base/wait"
)

func thread(pid int32, uid uint32) *caller.Ctx {
	c := caller.NewKernelCtx()
	c.PID = pid
	if uid != 0 {
		c.SetCred(&creds.Cred{UID: uid, EUID: uid, GID: uid, EGID: uid})
	}
	return c
}

func op(num uint16, n, flags int16) []linux.Sembuf {
	return []linux.Sembuf{{Num: num, Op: n, Flags: flags}}
}

// later runs f in the background and returns how it ended, once.
func later(f func() linux.Errno) chan linux.Errno {
	done := make(chan linux.Errno, 1)
	go func() { done <- f() }()
	return done
}

func mustWait(t *testing.T, done chan linux.Errno) {
	t.Helper()
	select {
	case e := <-done:
		t.Fatal("did not wait:", e)
	case <-time.After(20 * time.Millisecond):
	}
}

func TestSemaphores(t *testing.T) {
	a, b := thread(1, 0), thread(2, 0)
	id, e := SemGet(a, 5, 3, linux.IPC_CREAT|0o600)
	if e != 0 {
		t.Fatal(e)
	}
	if _, e := SemGet(a, 5, 4, 0); e != linux.EINVAL {
		t.Fatal(e)
	}
	if e := SemOp(a, id, op(3, 1, 0), 0, false); e != linux.EFBIG {
		t.Fatal(e)
	}
	if e := SemOp(a, id, op(0, -1, linux.IPC_NOWAIT), 0, false); e != linux.EAGAIN {
		t.Fatal(e)
	}
	// All or nothing: the first operation is taken back.
	both := []linux.Sembuf{{Num: 1, Op: 2}, {Num: 0, Op: -1}}
	done := later(func() linux.Errno { return SemOp(b, id, both, wait.NoDeadline, false) })
	mustWait(t, done)
	if v, _ := SemValues(a, id); v[0] != 0 || v[1] != 0 {
		t.Fatal(v)
	}
	if n, _ := SemCtl(a, id, 0, linux.GETNCNT, 0); n != 1 {
		t.Fatal(n, "waiters")
	}
	if e := SemOp(a, id, op(0, 1, linux.SEM_UNDO), 0, false); e != 0 {
		t.Fatal(e)
	}
	if e := <-done; e != 0 {
		t.Fatal(e)
	}
	if v, _ := SemValues(a, id); v[0] != 0 || v[1] != 2 {
		t.Fatal(v)
	}
	if pid, _ := SemCtl(a, id, 1, linux.GETPID, 0); pid != 2 {
		t.Fatal(pid)
	}
	if n, _ := SemCtl(a, id, 0, linux.GETNCNT, 0); n != 0 {
		t.Fatal(n, "waiters")
	}
	// The end of a process takes back what it marked.
	SemOp(b, id, op(1, -2, linux.SEM_UNDO), 0, false)
	done = later(func() linux.Errno { return SemOp(a, id, op(1, -1, 0), wait.NoDeadline, false) })
	mustWait(t, done)
	SemExit(2)
	if e := <-done; e != 0 {
		t.Fatal(e)
	}
	if e := SemOp(a, id, op(2, linux.SEMVMX, 0), 0, false); e != 0 {
		t.Fatal(e)
	}
	if e := SemOp(a, id, op(2, 1, 0), 0, false); e != linux.ERANGE {
		t.Fatal(e)
	}
	if e := SemOp(a, id, op(0, -5, 0), wait.Now()+1e6, false); e != linux.EAGAIN {
		t.Fatal(e)
	}
	done = later(func() linux.Errno { return SemOp(b, id, op(2, 0, 0), wait.NoDeadline, false) })
	mustWait(t, done)
	if e := SemRemove(thread(3, 1000), id); e != linux.EPERM {
		t.Fatal(e)
	}
	if e := SemRemove(a, id); e != 0 {
		t.Fatal(e)
	}
	if e := <-done; e != linux.EIDRM {
		t.Fatal(e)
	}
	if sets, _, n := SemUsage(); sets != 0 || n != 0 || allUndo != 0 {
		t.Fatal(sets, n, allUndo)
	}
}

func TestSignalsEndWaits(t *testing.T) {
	a := thread(1, 0)
	id, _ := SemGet(a, linux.IPC_PRIVATE, 1, 0o600)
	defer SemRemove(a, id)
	done := later(func() linux.Errno { return SemOp(a, id, op(0, -1, 0), wait.NoDeadline, false) })
	mustWait(t, done)
	a.SetInterrupted(true)
	if e := <-done; e != linux.EINTR {
		t.Fatal(e)
	}
}

func TestMessages(t *testing.T) {
	a, b := thread(1, 0), thread(2, 0)
	id, e := MsgGet(a, 9, linux.IPC_CREAT|0o600)
	if e != 0 {
		t.Fatal(e)
	}
	for i, kind := range []int64{5, 3, 4, 3} {
		if e := MsgSend(a, id, kind, []byte{byte(i), 'x'}, false); e != 0 {
			t.Fatal(e)
		}
	}
	for i, c := range []struct {
		kind  int64
		flags uint32
		want  byte
	}{{4, 0, 2}, {-4, 0, 1}, {3, linux.MSG_EXCEPT, 0}, {0, 0, 3}} {
		_, text, e := MsgReceive(b, id, 10, c.kind, c.flags)
		if e != 0 || text[0] != c.want {
			t.Fatal(i, text, e)
		}
	}
	if _, _, e := MsgReceive(b, id, 10, 0, linux.IPC_NOWAIT); e != linux.ENOMSG {
		t.Fatal(e)
	}
	done := later(func() linux.Errno {
		_, text, e := MsgReceive(b, id, 1, 7, linux.MSG_NOERROR)
		if e == 0 && string(text) != "h" {
			t.Errorf("%q", text)
		}
		return e
	})
	mustWait(t, done)
	MsgSend(a, id, 6, []byte("no"), false)
	mustWait(t, done)
	MsgSend(a, id, 7, []byte("hello"), false)
	if e := <-done; e != 0 {
		t.Fatal(e)
	}
	if _, _, e := MsgReceive(b, id, 1, 6, 0); e != linux.E2BIG {
		t.Fatal(e)
	}
	// A full queue holds the sender up.
	for e == 0 {
		e = MsgSend(a, id, 1, make([]byte, 4000), true)
	}
	if e != linux.EAGAIN {
		t.Fatal(e)
	}
	done = later(func() linux.Errno { return MsgSend(a, id, 1, make([]byte, 4000), false) })
	mustWait(t, done)
	if d, _ := MsgStat(a, id); d.Used > linux.MSGMNB || d.Num != 5 {
		t.Fatal(d)
	}
	MsgReceive(b, id, 5000, 1, 0)
	if e := <-done; e != 0 {
		t.Fatal(e)
	}
	done = later(func() linux.Errno { _, _, e := MsgReceive(b, id, 1, 99, 0); return e })
	mustWait(t, done)
	if e := MsgRemove(a, id); e != 0 {
		t.Fatal(e)
	}
	if e := <-done; e != linux.EIDRM {
		t.Fatal(e)
	}
	if n := allBytes.Get().Used(); n != 0 {
		t.Fatal(n)
	}
	if e := MsgSend(a, id, 0, nil, false); e != linux.EINVAL {
		t.Fatal(e)
	}
}
