package vfs_test

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"hardtack/abi/linux"
	"hardtack/kernel/base/wait"
	"hardtack/kernel/fs/vfs"
)

// TestManySignals has one event that concerns many open files. Each is told, and the
// event makes no goroutine for each of them.
func TestManySignals(t *testing.T) {
	c, ctx := newTree(t)
	vfs.MkdirAt(c, ctx, nil, "/d", 0o755)
	hold, sent := make(chan struct{}), atomic.Int32{}
	vfs.SignalIO.Set(func(vfs.Owner, int32, int32, wait.Events) {
		<-hold
		sent.Add(1)
	})
	t.Cleanup(func() { vfs.SignalIO.Call = nil })
	const n = 2000
	c.PID = 5
	table := vfs.NewFDTable(c.Cred())
	files := make([]*vfs.File, n)
	for i := range files {
		f, e := vfs.Open(c, ctx, nil, "/d", linux.O_RDONLY, 0)
		if e != 0 {
			t.Fatal(e)
		}
		files[i] = f
		if e := f.NotifyDir(c, table, int32(i), linux.DN_CREATE|linux.DN_DELETE|linux.DN_MULTISHOT); e != 0 {
			t.Fatal(e)
		}
	}
	before := runtime.NumGoroutine()
	if e := vfs.MkdirAt(c, ctx, nil, "/d/sub", 0o755); e != 0 {
		t.Fatal(e)
	}
	if more := runtime.NumGoroutine() - before; more > 10 {
		t.Errorf("one event has made %d goroutines", more)
	}
	close(hold)
	for end := time.Now().Add(time.Minute); sent.Load() < n && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	if sent.Load() != n {
		t.Errorf("%d signals of %d", sent.Load(), n)
	}
	for _, f := range files {
		f.Put()
	}
	vfs.RmdirAt(c, ctx, nil, "/d/sub")
	time.Sleep(10 * time.Millisecond)
	if sent.Load() != n {
		t.Error("a closed directory has sent a signal")
	}
}
