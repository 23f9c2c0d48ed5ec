package msg_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"hardtack/msg"
	"hardtack/msg/ump"
)

// counted counts what is asked of a kernel.
type counted struct {
	ump.Kernel
	waits, signals atomic.Int64
}

func (k *counted) Signal(fd int) error { k.signals.Add(1); return k.Kernel.Signal(fd) }

func (k *counted) Wait(fd int, d time.Duration) error { k.waits.Add(1); return k.Kernel.Wait(fd, d) }

// events is a kernel with eventfds as notifications, for where Hardtack is not.
type events struct{}

func (events) Here() bool        { return true }
func (events) New() (int, error) { return unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK) }

func (events) Signal(fd int) error {
	_, err := unix.Write(fd, []byte{1, 0, 0, 0, 0, 0, 0, 0})
	return err
}

func (events) Wait(fd int, d time.Duration) error {
	ms := -1
	if d > 0 {
		ms = int(d.Milliseconds()) + 1
	}
	unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, ms)
	_, err := unix.Read(fd, make([]byte, 8))
	return err
}

// handed is the kernel of a process that has one processor, else nil.
var handed *counted

func init() {
	if os.Getenv("MSG_ONE_CPU") == "" {
		return
	}
	handed = &counted{Kernel: ump.Hardtack{}}
	if !handed.Here() {
		handed.Kernel = events{}
	}
	ump.SetKernel(handed)
}

// TestHand runs tests again in a process that has one processor, where ends hand it
// to each other.
func TestHand(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var all, one unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		t.Fatal(err)
	}
	one.Set(lowest(&all))
	if err := unix.SchedSetaffinity(0, &one); err != nil {
		t.Fatal(err)
	}
	defer unix.SchedSetaffinity(0, &all)
	run := "^(TestTurns|TestUMP|TestRebind|TestCaps|TestEnd.*|TestPartKept|TestCaller|TestChannels|TestKill|TestCloseInBind)$"
	cmd := exec.Command("/proc/self/exe", "-test.run", run, "-test.v")
	cmd.Env = append(os.Environ(), "MSG_ONE_CPU=1")
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: TestTurns") {
		t.Errorf("%v\n%s", err, out)
	}
}

func lowest(set *unix.CPUSet) int {
	for cpu := range 1024 {
		if set.IsSet(cpu) {
			return cpu
		}
	}
	return 0
}

// echo answers what a parent sends, in a process of its own.
func echo(dir string) {
	ctx := context.Background()
	c, err := msg.Connect(ctx, "turns", msg.TestIface, &msg.Options{Resolver: msg.Directory(dir)})
	for err == nil {
		var v uint64
		if v, err = msg.RecvShort(ctx, c); err == nil {
			err = msg.SendShort(ctx, c, v+1)
		}
	}
	if !errors.Is(err, msg.ErrPeerClosed) {
		fmt.Fprintln(os.Stderr, "echo:", err)
		os.Exit(1)
	}
}

// Processes that take turns wait at their places, each roused by the other; a wait
// that nobody ends, ends.
func TestTurns(t *testing.T) {
	if handed == nil {
		t.Skip("runs as part of TestHand")
	}
	const turns = 2000
	ctx, dir := timeLimit(t), t.TempDir()
	s, err := msg.Export(ctx, "turns", msg.TestIface, &msg.Options{Resolver: msg.Directory(dir)})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	cmd := exec.CommandContext(ctx, "/proc/self/exe")
	cmd.Env, cmd.Stderr = append(os.Environ(), "MSG_TEST_ECHO="+dir), os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	a, err := s.Accept(ctx)
	if err != nil {
		t.Fatal(err)
	}
	waits, signals := handed.waits.Load(), handed.signals.Load()
	for i := range uint64(turns) {
		if err := msg.SendShort(ctx, a, i); err != nil {
			t.Fatal(err)
		}
		if v, err := msg.RecvShort(ctx, a); err != nil || v != i+1 {
			t.Fatal(v, err)
		}
	}
	waits, signals = handed.waits.Load()-waits, handed.signals.Load()-signals
	if waits < turns/10 || signals < turns/10 { // some are spared where a message is there already
		t.Errorf("%d turns: %d waits, %d signals", turns, waits, signals)
	}
	short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	if _, _, err := a.Next(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	go func() {
		time.Sleep(20 * time.Millisecond)
		a.Close()
	}()
	if _, _, err := a.Next(ctx); !errors.Is(err, msg.ErrClosed) {
		t.Error(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}
