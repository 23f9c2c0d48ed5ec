package main

import (
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"hardtack/idl/metrics"
	"hardtack/idl/names"
	"hardtack/msg/kernel"
)

// kinds are clients that break the rules, or do not follow them.
var kinds = map[string]func(f *os.File){
	"silent": func(f *os.File) {},
	"half":   func(f *os.File) { f.Write([]byte{100, 0}) },
	"halfframe": func(f *os.File) {
		f.Write(append([]byte{100, 0, 0, 0}, make([]byte, 50)...))
	},
	"long": func(f *os.File) { f.Write([]byte{0, 0, 0, 255, 1, 2, 3}) },
	"zeros": func(f *os.File) {
		f.Write(make([]byte, 1<<16))
	},
	"garbage": func(f *os.File) {
		b := make([]byte, 1<<12)
		for i := range b {
			b[i] = byte(i * 7919 >> 3)
		}
		for range 20 {
			if _, err := f.Write(append([]byte{0, 8, 0, 0}, b[:2048]...)); err != nil {
				return
			}
		}
	},
	"flood": func(*os.File) {
		c := must(metrics.Connect(ctx, "metrics", kernel.Options()))
		for i := range 2000 {
			if err := c.SendFramesCall(ctx, &metrics.FramesCall{}); err != nil {
				if i < 1 {
					wrong("flood: %v", err)
				}
				return // its answers were not taken, or a number came twice
			}
		}
	},
	"waits": func(*os.File) { // calls that are answered never
		c := must(names.Connect(ctx, "names", kernel.Options()))
		n := names.NewClient(c, nil)
		now := must(n.Watch(ctx, names.WatchCall{})).Changes
		for range 500 {
			go n.Watch(ctx, names.WatchCall{Since: now})
		}
	},
}

// victim is one of them, in a process of its own, until it is killed.
func victim() {
	f := must(os.OpenFile("/dev/kernel/metrics", os.O_RDWR, 0))
	f.SetDeadline(time.Time{})
	go kinds[os.Args[2]](f)
	fmt.Println("ready")
	time.Sleep(time.Hour)
}

// hostile has them run together while the service answers others.
func hostile() {
	var all []*exec.Cmd
	for name := range kinds {
		cmd := exec.Command("/runner", "victim", name)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 1001, Gid: 1001}}
		out, err := cmd.StdoutPipe()
		if err != nil || cmd.Start() != nil {
			wrong("%s: %v", name, err)
		}
		b := make([]byte, 6)
		if _, err := out.Read(b); err != nil || string(b) != "ready\n" {
			wrong("%s: %q %v", name, b, err)
		}
		all = append(all, cmd)
	}
	for range 200 {
		c := must(metrics.Connect(ctx, "metrics", kernel.Options()))
		must(metrics.NewClient(c, nil).Frames(ctx, metrics.FramesCall{}))
		c.Close()
	}
	for _, cmd := range all {
		cmd.Process.Kill()
		cmd.Wait()
	}

	// A frame that comes in pieces is one.
	f := must(os.OpenFile("/dev/kernel/metrics", os.O_RDWR, 0))
	defer f.Close()
	for _, b := range binary.LittleEndian.AppendUint32(nil, 40) {
		f.Write([]byte{b})
	}
	f.Write(make([]byte, 40)) // no greeting
	if n, err := f.Read(make([]byte, 10)); n != 0 || err == nil {
		wrong("after nonsense %d %v", n, err)
	}
	if _, err := f.Write([]byte{1}); err == nil {
		wrong("a write after the end")
	}
}

// goroutines is how many the kernel has that serve connections.
func goroutines() int {
	return strings.Count(string(must(os.ReadFile("/proc/hardtack/goroutines"))), "service.(*Client)")
}

// left waits until nothing of the connections is left.
func left() {
	for goroutines() > 0 {
		time.Sleep(10 * time.Millisecond)
	}
}

// kept is what the kernel's heap has, with stacks, and what the ledger charges this process.
func kept() (heap, ledger int64) {
	os.WriteFile("/proc/hardtack/heap", []byte("1"), 0)
	for line := range strings.Lines(string(must(os.ReadFile("/proc/hardtack/heap")))) {
		var name string
		var n int64
		if fmt.Sscan(line, &name, &n); name == "HeapAlloc" || name == "StackInuse" {
			heap += n
		}
	}
	for line := range strings.Lines(string(must(os.ReadFile("/proc/hardtack/ledger")))) {
		w := strings.Fields(line)
		if len(w) > 2 && w[0] == "process" && w[1] == fmt.Sprint(os.Getpid()) {
			for i, x := range w {
				if x == "sockets" || x == "messages" {
					var n int64
					fmt.Sscan(w[i+1], &n)
					ledger += n
				}
			}
		}
	}
	return heap, ledger
}

// memory compares what connections take of the kernel's heap with what the ledger says.
func memory() {
	kept()
	h0, l0 := kept()
	const n = 16
	for range n {
		c := must(metrics.Connect(ctx, "metrics", kernel.Options()))
		defer c.Close()
		m := metrics.NewClient(c, nil)
		must(m.Latencies(ctx, metrics.LatenciesCall{}))
	}
	h, l := kept()
	fmt.Printf("a connection: heap %d ledger %d\n", (h-h0)/n, (l-l0)/n)
	if l-l0 < h-h0 || l-l0 > 4*(h-h0) {
		wrong("memory")
	}
}
