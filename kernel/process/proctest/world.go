// Package proctest is a test environment on the host: process 1 with an empty file system
// and its own memory, and processes whose programs are Go functions.
//
// The host has no user mode. A thread's goroutine runs a test's function instead of
// its loop; Call does what the loop does around a system call.
package proctest

import (
	"sync"
	"testing"
	"time"

	"hardtack/abi/linux"
	"hardtack/kernel/base/mem"
	"hardtack/kernel/fs/tmpfs"
	"hardtack/kernel/fs/vfs"
	"hardtack/kernel/mm/vm"
	"hardtack/kernel/process/proc"
)

// Script is a thread's program. The thread exits with 0 when it returns.
type Script func(t *proc.Thread)

var world struct {
	once sync.Once
	init *proc.Thread
	root vfs.Path
	// asked is what process 1 is to run.
	asked chan Script

	mu      sync.Mutex
	scripts map[*proc.Thread]Script // what a new thread will run; guarded by mu
}

// frames is how much memory the world has.
const frames = 16384

func start() {
	mem.InitHost(frames)
	fs := tmpfs.New(tmpfs.Options{Mode: 0o755})
	_, world.root = vfs.NewNamespace(fs.FileSystem, "root")
	t := proc.StartOnHost(&proc.StartArgs{FS: vfs.NewFSContext(world.root)}, run)
	space, err := vm.New()
	if err != 0 {
		panic(err)
	}
	t.Space, t.Mem = space, space
	world.init = t
	world.asked = make(chan Script)
	world.scripts = map[*proc.Thread]Script{t: func(t *proc.Thread) {
		for fn := range world.asked {
			fn(t)
			if !t.Return() {
				return
			}
		}
	}}
	t.Launch()
}

// run waits for a thread's script, which its maker leaves there, and runs it.
func run(t *proc.Thread) {
	for {
		world.mu.Lock()
		fn := world.scripts[t]
		delete(world.scripts, t)
		world.mu.Unlock()
		if fn != nil {
			fn(t)
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// Init returns process 1's thread.
func Init() *proc.Thread {
	world.once.Do(start)
	return world.init
}

// Root returns the root of the file system.
func Root() vfs.Path {
	Init()
	return world.root
}

// AsInit runs fn on process 1's goroutine and waits for its end, also where fn ends the
// goroutine's test.
func AsInit(fn Script) {
	Init()
	done := make(chan bool)
	world.asked <- func(t *proc.Thread) {
		defer close(done)
		fn(t)
	}
	<-done
}

// Call does what a thread does for a system call, on the thread's own goroutine; if
// it is false the thread must end.
func Call(t *proc.Thread, fn func()) bool {
	fn()
	return t.Return()
}

// Fork is a clone that makes a process as fork does.
var Fork = proc.CloneArgs{ExitSignal: linux.SIGCHLD}

// Clone makes a child of t that runs fn and then exits with 0, unless fn called Exit
// or was killed.
func Clone(t *proc.Thread, a proc.CloneArgs, fn Script) (int32, linux.Errno) {
	world.mu.Lock()
	defer world.mu.Unlock()
	a.Flags &^= linux.CLONE_VFORK
	tid, e := t.Clone(&a)
	if e == 0 {
		world.scripts[proc.ByTID(tid)] = func(c *proc.Thread) {
			fn(c)
			if !c.Ending() {
				c.Exit(0)
			}
		}
	}
	return tid, e
}

// Spawn is Clone where it must succeed.
func Spawn(tb testing.TB, t *proc.Thread, a proc.CloneArgs, fn Script) int32 {
	tb.Helper()
	tid, e := Clone(t, a, fn)
	if e != 0 {
		tb.Errorf("clone: %v", e)
	}
	return tid
}

// Wait waits for a child and returns its status.
func Wait(tb testing.TB, t *proc.Thread, pid int32) proc.WaitResult {
	tb.Helper()
	r, e := t.Wait(&proc.WaitArgs{Kind: linux.P_PID, ID: pid, Options: linux.WEXITED | linux.WSTOPPED | linux.WCONTINUED})
	if e != 0 {
		tb.Errorf("wait for %d: %v", pid, e)
	}
	return r
}

// Map maps n bytes in the thread's space.
func Map(tb testing.TB, t *proc.Thread, n uint64) uint64 {
	tb.Helper()
	a, e := t.Space.Mmap(&t.Ctx, &vm.MapArgs{
		Length: n, Prot: linux.PROT_READ | linux.PROT_WRITE, Flags: linux.MAP_PRIVATE | linux.MAP_ANONYMOUS,
	})
	if e != 0 {
		tb.Fatal(e)
	}
	return a
}

// Put writes a file into the world's file system.
func Put(tb testing.TB, t *proc.Thread, path string, mode uint32, data []byte) {
	tb.Helper()
	f, e := vfs.Open(&t.Ctx, t.FS, nil, path, linux.O_CREAT|linux.O_WRONLY|linux.O_TRUNC, mode)
	if e != 0 {
		tb.Fatal(path, e)
	}
	defer f.Put()
	for off := 0; off < len(data); {
		t.Vec.InitBytes(data[off:])
		n, e := f.Ops.Write(&t.Ctx, f, &t.Vec, int64(off))
		if e != 0 {
			tb.Fatal(path, e)
		}
		off += n
	}
}

// Eventually waits for what other goroutines are to do, a minute at most.
func Eventually(tb testing.TB, what string, ok func() bool) {
	tb.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if ok() {
			return
		}
	}
	tb.Errorf("never happened: %s", what)
}
