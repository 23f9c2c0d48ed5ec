// Command services tests the kernel's services from programs of root and of another user.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"hardtack/idl/clusters"
	"hardtack/idl/klog"
	"hardtack/idl/metrics"
	"hardtack/idl/names"
	"hardtack/idl/process"
	"hardtack/msg/kernel"
)

var ctx = context.Background()

func wrong(format string, args ...any) {
	fmt.Printf("WRONG "+format+"\n", args...)
	os.Exit(1)
}

func must[T any](v T, err error) T {
	if err != nil {
		wrong("%T: %v", v, err)
	}
	return v
}

func want(what string, err, is error) {
	if !errors.Is(err, is) {
		wrong("%s: %v, not %v", what, err, is)
	}
}

func words(list ...string) []byte { return []byte(strings.Join(list, "\x00") + "\x00") }

func main() {
	switch os.Args[1] {
	case "user":
		asUser()
		return
	case "say":
		fmt.Println(strings.Join(os.Args[2:], " "), os.Getuid())
		os.Exit(7)
	case "limits":
		var r syscall.Rlimit
		syscall.Getrlimit(syscall.RLIMIT_CORE, &r)
		old := syscall.Umask(0)
		d, _ := os.Getwd()
		fmt.Println(r.Cur, r.Max, old, d, os.Getppid())
		return
	case "sleep":
		time.Sleep(time.Hour)
	case "victim":
		victim()
	}
	steps := []struct {
		name string
		do   func()
	}{{"example", example}, {"process", programs}, {"clusters", overview}, {"names", register}, {"log", log},
		{"metrics", figures}, {"user", user}, {"hostile", hostile}, {"C", inC}, {"left", left}, {"memory", memory}}
	for _, s := range steps {
		s.do()
		fmt.Println(s.name)
	}
	fmt.Println("the end")
}

func example() {
	out, err := exec.Command("/example", "/runner", "say", "hello").CombinedOutput()
	text := string(out)
	if err != nil || !strings.Contains(text, "cluster 0: ") || !strings.Contains(text, "hello 0\nprocess: status 7, signal 0\n") || !strings.Contains(text, "log: [") {
		wrong("example: %v\n%s", err, text)
	}
}

// inC runs the example in C, and a client of all services in C, if there are any.
func inC() {
	if _, err := os.Stat("/cexample"); err != nil {
		return
	}
	out, err := exec.Command("/cexample", "/runner", "say", "hello").CombinedOutput()
	if text := string(out); err != nil || !strings.Contains(text, "frames: ") || !strings.Contains(text, "hello 0\nprocess: status 7, signal 0\n") || !strings.Contains(text, "log: [") {
		wrong("example in C: %v\n%s", err, text)
	}
	if out, err = exec.Command("/cclient").CombinedOutput(); err != nil || string(out) != "right\n" {
		wrong("client in C: %v\n%s", err, out)
	}
}

func newProcess() (*process.Conn, *process.Client) {
	c := must(process.Connect(ctx, "process", kernel.Options()))
	return c, process.NewClient(c, nil)
}

// run starts this program and returns its number.
func run(c *process.Client, args ...string) uint32 {
	return must(c.Start(ctx, process.StartCall{Arguments: words(append([]string{"/runner"}, args...)...)})).Process
}

// output is what a program writes, and how it ends.
func output(c *process.Client, pid uint32) (text string, end process.WaitReply) {
	for {
		o := must(c.Output(ctx, process.OutputCall{Process: pid}))
		if len(o.Bytes) == 0 {
			return text, must(c.Wait(ctx, process.WaitCall{Process: pid}))
		}
		text += string(o.Bytes)
	}
}

func programs() {
	syscall.Umask(0o27)
	syscall.Setrlimit(syscall.RLIMIT_CORE, &syscall.Rlimit{Cur: 12345, Max: 23456})
	os.Chdir("/proc")
	conn, c := newProcess()
	defer conn.Close()
	os.Chdir("/") // the channel's owner was elsewhere when it was opened
	if text, end := output(c, run(c, "limits")); text != "12345 23456 23 /proc 0\n" || end.Status != 0 {
		wrong("inherited: %q %+v", text, end)
	}
	_, err := c.Start(ctx, process.StartCall{Arguments: words("/none")})
	want("no program", err, process.ErrNoProgram)
	_, err = c.Start(ctx, process.StartCall{})
	want("no name", err, process.ErrNoProgram)
	_, err = c.Wait(ctx, process.WaitCall{Process: 1})
	want("wait for another's", err, process.ErrNoProcess)
	_, err = c.Wait(ctx, process.WaitCall{})
	want("wait for 0", err, process.ErrNoProcess)

	pid := run(c, "sleep")
	ended := make(chan process.WaitReply)
	go func() { ended <- must(c.Wait(ctx, process.WaitCall{Process: pid})) }()
	must(c.Signal(ctx, process.SignalCall{Process: pid}))
	must(c.Signal(ctx, process.SignalCall{Process: pid, Number: 15}))
	if e := <-ended; e.Signal != 15 {
		wrong("ended by %+v", e)
	}
	_, err = c.Signal(ctx, process.SignalCall{Process: pid, Number: 15})
	want("signal after the end", err, process.ErrNoProcess)
	_, err = c.Signal(ctx, process.SignalCall{Process: 1 << 31, Number: 15})
	want("signal a wrong number", err, process.ErrNoProcess)
	_, err = c.Signal(ctx, process.SignalCall{Process: 1, Number: 65})
	want("signal 65", err, process.ErrInvalid)

	// A wait that is given up, and more programs than a connection may have.
	pid = run(c, "sleep")
	short, cancel := context.WithCancel(ctx)
	gone := make(chan error)
	go func() {
		_, err := c.Wait(short, process.WaitCall{Process: pid})
		gone <- err
	}()
	cancel()
	want("wait given up", <-gone, context.Canceled)
	var all []uint32
	for err = nil; err == nil; {
		var p process.StartReply
		if p, err = c.Start(ctx, process.StartCall{Arguments: words("/runner", "say")}); err == nil {
			all = append(all, p.Process)
		}
	}
	want("too many", err, process.ErrMany)
	for _, p := range all {
		must(c.Wait(ctx, process.WaitCall{Process: p}))
	}
	must(c.Signal(ctx, process.SignalCall{Process: pid, Number: 9}))
}

func overview() {
	conn := must(clusters.Connect(ctx, "clusters", kernel.Options()))
	defer conn.Close()
	c := clusters.NewClient(conn, nil)
	list := must(c.List(ctx, clusters.ListCall{}))
	for os.Args[1] == "clusters" && len(list.Others) == 0 { // it is starting
		time.Sleep(time.Millisecond)
		list = must(c.List(ctx, clusters.ListCall{}))
	}
	for _, n := range append(list.Others, 0) {
		if h := must(c.Health(ctx, clusters.HealthCall{Cluster: n})); h.Memory == 0 || h.Processors == 0 || h.Heap == 0 {
			wrong("health of %d: %+v", n, h)
		}
	}
	_, err := c.Health(ctx, clusters.HealthCall{Cluster: 9})
	want("health of none", err, clusters.ErrNoCluster)
	_, err = c.Health(ctx, clusters.HealthCall{Cluster: 1 << 31})
	want("health of a wrong number", err, clusters.ErrNoCluster)
	_, err = c.Change(ctx, clusters.ChangeCall{What: clusters.ActionKill})
	want("end of the first", err, clusters.ErrNoCluster)
	if len(list.Others) > 0 {
		must(c.Change(ctx, clusters.ChangeCall{Cluster: 1, What: clusters.ActionKill}))
		for len(list.Others) > 0 {
			time.Sleep(time.Millisecond)
			list = must(c.List(ctx, clusters.ListCall{}))
		}
		must(c.Change(ctx, clusters.ChangeCall{Cluster: 1, What: clusters.ActionRestart}))
	}
}

func newNames() (*names.Conn, *names.Client) {
	c := must(names.Connect(ctx, "names", kernel.Options()))
	return c, names.NewClient(c, nil)
}

func register() {
	conn, c := newNames()
	other, d := newNames()
	defer conn.Close()
	now := must(d.Watch(ctx, names.WatchCall{})).Changes
	changed := make(chan uint64)
	go func() { changed <- must(d.Watch(ctx, names.WatchCall{Since: now})).Changes }()
	must(c.Publish(ctx, names.PublishCall{Name: "b", Addresses: []names.Address{"x:y"}}))
	if n := <-changed; n <= now {
		wrong("changes %d after %d", n, now)
	}
	_, err := d.Publish(ctx, names.PublishCall{Name: "b"})
	want("taken", err, names.ErrTaken)
	_, err = d.Withdraw(ctx, names.WithdrawCall{Name: "b"})
	want("another's", err, names.ErrNoName)
	_, err = d.Publish(ctx, names.PublishCall{Name: "a b"})
	want("a blank", err, names.ErrInvalid)
	must(d.Publish(ctx, names.PublishCall{Name: "a"}))
	if l := must(c.List(ctx, names.ListCall{})).Entries; len(l) != 2 || l[0].Name != "a" || l[1].Name != "b" || l[1].Process != uint32(os.Getpid()) {
		wrong("list %+v", l)
	}
	now = must(c.Watch(ctx, names.WatchCall{})).Changes
	other.Close() // and a is gone
	must(c.Watch(ctx, names.WatchCall{Since: now}))
	if l := must(c.List(ctx, names.ListCall{})).Entries; len(l) != 1 || l[0].Name != "b" {
		wrong("list %+v", l)
	}
	must(c.Withdraw(ctx, names.WithdrawCall{Name: "b"}))
	_, err = c.Look(ctx, names.LookCall{Name: "b"})
	want("withdrawn", err, names.ErrNoName)
}

func log() {
	conn := must(klog.Connect(ctx, "log", kernel.Options()))
	defer conn.Close()
	c := klog.NewClient(conn, nil)
	b := must(c.Bounds(ctx, klog.BoundsCall{}))
	read := make(chan klog.ReadReply)
	go func() { read <- must(c.Read(ctx, klog.ReadCall{From: b.Next})) }()
	must(c.Write(ctx, klog.WriteCall{Priority: 6, Text: "from a channel"}))
	if m := <-read; m.Text != "from a channel" || m.Number != b.Next || m.Priority != 8|6 {
		wrong("read %+v", m)
	}
	n, err := 1, error(nil)
	for ; err == nil; n++ {
		_, err = c.Write(ctx, klog.WriteCall{Text: "more"})
	}
	want("many lines", err, klog.ErrBusy)
}

func figures() {
	conn := must(metrics.Connect(ctx, "metrics", kernel.Options()))
	defer conn.Close()
	c := metrics.NewClient(conn, nil)
	if f := must(c.Frames(ctx, metrics.FramesCall{})); f.Total == 0 || f.Unused == 0 || f.Unused > f.Total {
		wrong("frames %+v", f)
	}
	if h := must(c.Heap(ctx, metrics.HeapCall{})); h.Alive == 0 || h.InUse == 0 {
		wrong("heap %+v", h)
	}
	if p := must(c.Processors(ctx, metrics.ProcessorsCall{})); len(p.Idle) == 0 || p.Now == 0 {
		wrong("processors %+v", p)
	}
	if i := must(c.Interrupts(ctx, metrics.InterruptsCall{})); len(i.Processors) == 0 || i.Processors[0] == 0 {
		wrong("interrupts %+v", i)
	}
	seen := map[string]uint64{}
	for place := uint32(0); ; {
		r := must(c.Calls(ctx, metrics.CallsCall{Place: place}))
		for _, n := range r.Counts {
			seen[n.Name] = n.Calls
		}
		if place = r.Next; place == 0 {
			break
		}
	}
	if seen["execve"] == 0 || seen["read"] == 0 {
		wrong("calls %v", seen)
	}
	if l := must(c.Latencies(ctx, metrics.LatenciesCall{})); len(l.Found) == 0 || len(l.Found[0].Buckets) == 0 {
		wrong("latencies %+v", l)
	}
}

// user runs a program of another user, which may not do what root may.
func user() {
	cmd := exec.Command("/runner", "user", fmt.Sprint(os.Getpid()))
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 1000, Gid: 1000}}
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		wrong("user: %v", err)
	}
}

func asUser() {
	conn, c := newProcess()
	defer conn.Close()
	var root uint32
	fmt.Sscan(os.Args[2], &root)
	for _, pid := range []uint32{1, root} {
		_, err := c.Signal(ctx, process.SignalCall{Process: pid, Number: 15})
		want("signal root's", err, process.ErrRefused)
	}
	if text, end := output(c, run(c, "say", "as")); text != "as 1000\n" || end.Status != 7 {
		wrong("%q %+v", text, end)
	}
	os.WriteFile("/tmp/secret", nil, 0o600)
	_, err := c.Start(ctx, process.StartCall{Arguments: words("/tmp/secret")})
	want("no execute right", err, process.ErrNoProgram)

	lc := must(klog.Connect(ctx, "log", kernel.Options()))
	defer lc.Close()
	l := klog.NewClient(lc, nil)
	_, err = l.Read(ctx, klog.ReadCall{})
	want("read the log", err, klog.ErrRefused)
	_, err = l.Bounds(ctx, klog.BoundsCall{})
	want("bounds of the log", err, klog.ErrRefused)
	_, err = l.Write(ctx, klog.WriteCall{Text: "x"})
	want("write the log", err, klog.ErrRefused)

	mc := must(metrics.Connect(ctx, "metrics", kernel.Options()))
	defer mc.Close()
	m := metrics.NewClient(mc, nil)
	must(m.Frames(ctx, metrics.FramesCall{}))
	_, err = m.Heap(ctx, metrics.HeapCall{})
	want("the heap", err, metrics.ErrRefused)
	_, err = m.Calls(ctx, metrics.CallsCall{})
	want("calls", err, metrics.ErrRefused)

	cc := must(clusters.Connect(ctx, "clusters", kernel.Options()))
	defer cc.Close()
	k := clusters.NewClient(cc, nil)
	if h := must(k.Health(ctx, clusters.HealthCall{})); h.Memory == 0 || h.Heap != 0 {
		wrong("health %+v", h)
	}
	_, err = k.Health(ctx, clusters.HealthCall{Cluster: 1})
	want("another's health", err, clusters.ErrRefused)
	_, err = k.Change(ctx, clusters.ChangeCall{Cluster: 1, What: clusters.ActionKill})
	want("end of a cluster", err, clusters.ErrRefused)

	// More connections than a user may have, which leave room for root's.
	var open []*os.File
	for {
		f, err := os.OpenFile("/dev/kernel/names", os.O_RDWR, 0)
		if err != nil {
			want("too many", err, syscall.ENFILE)
			break
		}
		open = append(open, f)
	}
	if len(open) < 4 {
		wrong("%d connections", len(open))
	}
}
