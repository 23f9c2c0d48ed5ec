// Command turns measures two processes that take turns: messages of generated stubs,
// one byte through a pipe and a Unix socket, and Hardtack's own calls. It prints one
// line per row, `NAME TURNS MEDIAN MINIMUM`, in nanoseconds per round trip, which are
// instructions in a machine that counts them.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"hardtack/bench/msg/trip"
	"hardtack/ipc"
	"hardtack/msg"
	"hardtack/msg/ump"
)

// nobody is a kernel without notifications: ends wait as on Linux.
type nobody struct{ ump.Kernel }

func (nobody) Here() bool { return false }

// row is a pair of programs. serve is the child's, with descriptors 3 and on; call
// makes the parent's, which does one round trip, and what the child gets.
type row struct {
	name  string
	here  bool // on Hardtack only
	serve func()
	call  func() (turn func(), files []*os.File)
}

var ctx = context.Background()

var rows = []row{
	{"pipe", false, servePipe, callPipe},
	{"unix", false, servePipe, callUnix},
	{"call-raw", true, func() { serveCalls(ipc.Receiver.RecvRaw, ipc.Receiver.ReplyRecvRaw) }, func() (func(), []*os.File) { return callCalls(ipc.Sender.CallRaw) }},
	{"call", true, func() { serveCalls(ipc.Receiver.Recv, ipc.Receiver.ReplyRecv) }, func() (func(), []*os.File) { return callCalls(ipc.Sender.Call) }},
	{"note-raw", true, func() { serveNotes(ipc.Notification.WaitRaw) }, func() (func(), []*os.File) { return callNotes(ipc.Notification.WaitRaw) }},
	{"note", true, func() { serveNotes(ipc.Notification.Wait) }, func() (func(), []*os.File) { return callNotes(ipc.Notification.Wait) }},
	{"ump", false, func() { ump.SetKernel(nobody{}); serveStubs() }, func() (func(), []*os.File) { ump.SetKernel(nobody{}); return callStubs() }},
	{"lmp", true, serveStubs, func() (func(), []*os.File) { ump.SetKernel(ump.Hardtack{}); return callStubs() }},
}

func main() {
	turns := flag.Int("n", 2000, "round trips a repetition")
	reps := flag.Int("reps", 7, "repetitions")
	serve := flag.String("serve", "", "be the child of a row")
	only := flag.String("only", "", "one row")
	cpu := flag.Int("cpu", -1, "run on this processor alone")
	flag.Parse()
	if *cpu >= 0 {
		pin(*cpu)
	}
	for _, r := range rows {
		if *serve == r.name {
			r.serve()
			return
		}
	}
	for _, r := range rows {
		if r.here && !ipc.Here() || *only != "" && *only != r.name {
			continue
		}
		measure(r, *turns, *reps)
	}
	fmt.Println("turns: done")
}

// pin starts the program once more, on one processor, which its children have too.
func pin(cpu int) {
	if os.Getenv("TURNS_PINNED") != "" {
		return
	}
	runtime.LockOSThread()
	var set unix.CPUSet
	set.Set(cpu)
	check(unix.SchedSetaffinity(0, &set))
	check(syscall.Exec("/proc/self/exe", os.Args, append(os.Environ(), "TURNS_PINNED=1")))
}

func measure(r row, turns, reps int) {
	turn, files := r.call()
	cmd := exec.Command("/proc/self/exe", "-serve", r.name)
	cmd.ExtraFiles, cmd.Stderr = files, os.Stderr
	cmd.Env = append(os.Environ(), "GOMAXPROCS="+strconv.Itoa(runtime.GOMAXPROCS(0)))
	check(cmd.Start())
	for _, f := range files {
		f.Close()
	}
	for range turns / 4 {
		turn()
	}
	var each []float64
	for range reps {
		start := time.Now()
		for range turns {
			turn()
		}
		each = append(each, float64(time.Since(start).Nanoseconds())/float64(turns))
	}
	slices.Sort(each)
	fmt.Printf("%s %d %.0f %.0f\n", r.name, turns, each[len(each)/2], each[0])
	check(cmd.Process.Kill())
	cmd.Wait()
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "turns:", err)
		os.Exit(1)
	}
}

// pass reads or writes one byte.
func pass(f func(int, []byte) (int, error), fd int, b []byte) {
	if n, err := f(fd, b); n != 1 {
		if err == nil { // the other end is gone
			os.Exit(0)
		}
		check(err)
	}
}

// servePipe echoes from descriptor 3 to the last.
func servePipe() {
	in, out, b := 3, 3, make([]byte, 1)
	var st syscall.Stat_t
	check(syscall.Fstat(3, &st))
	if st.Mode&syscall.S_IFMT == syscall.S_IFIFO {
		out = 4
	}
	for {
		pass(syscall.Read, in, b)
		pass(syscall.Write, out, b)
	}
}

func callPipe() (func(), []*os.File) {
	var to, from [2]int
	check(syscall.Pipe2(to[:], syscall.O_CLOEXEC))
	check(syscall.Pipe2(from[:], syscall.O_CLOEXEC))
	b := make([]byte, 1)
	return func() {
		pass(syscall.Write, to[1], b)
		pass(syscall.Read, from[0], b)
	}, []*os.File{os.NewFile(uintptr(to[0]), "in"), os.NewFile(uintptr(from[1]), "out")}
}

func callUnix() (func(), []*os.File) {
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	check(err)
	b := make([]byte, 1)
	return func() {
		pass(syscall.Write, fds[0], b)
		pass(syscall.Read, fds[0], b)
	}, []*os.File{os.NewFile(uintptr(fds[1]), "socket")}
}

func serveCalls(recv, replyRecv func(ipc.Receiver, *ipc.Message, ipc.Deadline) error) {
	runtime.LockOSThread() // tokens are the thread's
	m := new(ipc.Message)
	check(recv(3, m, ipc.Forever))
	for {
		m.Words()[0]++
		if replyRecv(3, m, ipc.Forever) == syscall.EINTR {
			check(recv(3, m, ipc.Forever))
		}
	}
}

func callCalls(call func(ipc.Sender, *ipc.Message, ipc.Deadline) error) (func(), []*os.File) {
	r, s, err := ipc.New(ipc.CloseOnExec)
	check(err)
	m := new(ipc.Message)
	return func() {
		m.Resize(8)
		if err := call(s, m, ipc.Forever); err != syscall.EINTR {
			check(err)
		}
	}, []*os.File{os.NewFile(uintptr(r), "receiver")}
}

func serveNotes(wait func(ipc.Notification, ipc.Deadline) (uint64, error)) {
	for {
		_, err := wait(3, ipc.Forever)
		check(err)
		check(ipc.Notification(4).Signal(1))
	}
}

func callNotes(wait func(ipc.Notification, ipc.Deadline) (uint64, error)) (func(), []*os.File) {
	var n [2]ipc.Notification
	var files []*os.File
	for i := range n {
		var err error
		n[i], err = ipc.NewNotification(ipc.CloseOnExec)
		check(err)
		fd, err := syscall.Dup(int(n[i]))
		check(err)
		files = append(files, os.NewFile(uintptr(fd), "notification"))
	}
	return func() {
		check(n[0].Signal(1))
		_, err := wait(n[1], ipc.Forever)
		check(err)
	}, files
}

// The name under which a stub's server is found.
const service = "turns"

func resolver() *msg.Options {
	return &msg.Options{Resolver: msg.Directory("/tmp/turns")}
}

func serveStubs() {
	s, err := trip.Export(ctx, service, resolver())
	check(err)
	c, err := s.Accept(ctx)
	check(err)
	for {
		m, err := c.Recv(ctx)
		if err != nil {
			return
		}
		check(c.SendSmall(ctx, m.(*trip.Small)))
	}
}

func callStubs() (func(), []*os.File) {
	var c *trip.Conn
	m := new(trip.Small)
	check(os.RemoveAll("/tmp/turns"))
	return func() {
		if c == nil { // the child is there now
			var err error
			c, err = trip.Connect(ctx, service, resolver())
			check(err)
		}
		m.Seq++
		check(c.SendSmall(ctx, m))
		got, err := c.Recv(ctx)
		check(err)
		if got.(*trip.Small).Seq != m.Seq {
			check(fmt.Errorf("message %d, not %d", got.(*trip.Small).Seq, m.Seq))
		}
	}, nil
}
