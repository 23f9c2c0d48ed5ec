package proc

import (
	"os"
	"sync"
	"testing"
	"time"

	"hardtack/abi/linux"
	"hardtack/kernel/kern"
	"hardtack/kernel/mem"
	"hardtack/kernel/tmpfs"
	"hardtack/kernel/uio"
	"hardtack/kernel/vfs"
	"hardtack/kernel/vm"
)

// The host has no user mode. A test's "program" is a Go function that a thread
// runs in place of its loop; call does what the loop does around a system call.

type script func(t *Thread)

var world struct {
	once  sync.Once
	mu    sync.Mutex
	code  map[*Thread]script // what a thread will run; guarded by mu
	init  *Thread
	root  vfs.Path
	ready chan func(t *Thread)
}

// call carries out a system call on the thread's own goroutine; false: the
// thread must end.
func (t *Thread) call(fn func()) bool {
	fn()
	return t.User.Work.Load() == 0 || t.handleWork()
}

func TestMain(m *testing.M) {
	mem.InitHost(16384)
	world.code = map[*Thread]script{}
	threadLoop = func(t *Thread) *Thread {
		for {
			world.mu.Lock()
			fn := world.code[t]
			delete(world.code, t)
			world.mu.Unlock()
			if fn != nil {
				fn(t)
				return t
			}
			time.Sleep(time.Millisecond)
		}
	}
	fs := tmpfs.New(tmpfs.Options{Mode: 0o755})
	_, world.root = vfs.NewNamespace(fs.FileSystem, "root")
	t := newInit(&StartArgs{FS: vfs.NewFSContext(world.root)})
	t.Space, _ = vm.New()
	t.Mem = t.Space
	world.init = t
	world.ready = make(chan func(t *Thread))
	world.code[t] = func(t *Thread) {
		for fn := range world.ready {
			fn(t)
			if !t.call(func() {}) {
				return
			}
		}
	}
	t.launch()
	os.Exit(m.Run())
}

// asInit runs fn on process 1's goroutine.
func asInit(fn func(t *Thread)) {
	done := make(chan bool)
	world.ready <- func(t *Thread) {
		fn(t)
		close(done)
	}
	<-done
}

// spawn makes a child of t that runs fn and then exits with 0, unless fn called
// Exit or was killed.
func (t *Thread) spawn(tb testing.TB, a CloneArgs, fn script) int32 {
	tb.Helper()
	world.mu.Lock()
	defer world.mu.Unlock()
	a.Flags &^= linux.CLONE_VFORK
	tid, e := t.Clone(&a)
	if e != 0 {
		tb.Errorf("clone: %v", e)
		return 0
	}
	world.code[ByTID(tid)] = func(c *Thread) {
		fn(c)
		if c.User.Work.Load()&workExit == 0 {
			c.Exit(0)
		}
	}
	return tid
}

var fork = CloneArgs{ExitSignal: linux.SIGCHLD}

// waitFor waits for a child and returns its status.
func (t *Thread) waitFor(tb testing.TB, pid int32) WaitResult {
	tb.Helper()
	r, e := t.Wait(&WaitArgs{Kind: linux.P_PID, ID: pid, Options: linux.WEXITED | linux.WSTOPPED | linux.WCONTINUED})
	if e != 0 {
		tb.Errorf("wait for %d: %v", pid, e)
	}
	return r
}

// page maps memory in the thread's space.
func (t *Thread) page(tb testing.TB, n uint64) uint64 {
	tb.Helper()
	a, e := t.Space.Mmap(&t.Ctx, &vm.MapArgs{
		Length: n, Prot: linux.PROT_READ | linux.PROT_WRITE, Flags: linux.MAP_PRIVATE | linux.MAP_ANONYMOUS,
	})
	if e != 0 {
		tb.Fatal(e)
	}
	return a
}

func eventually(tb testing.TB, what string, ok func() bool) {
	tb.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if ok() {
			return
		}
	}
	tb.Errorf("never happened: %s", what)
}

var (
	_ = kern.AllCaps
	_ uio.Addr
)
