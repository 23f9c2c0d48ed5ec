// Command crowd opens many connections to one server and prints what an idle one
// costs: memory of the server and processor time.
//
//	crowd [-n 10000] [-clients 2]
//
// The server and the clients are processes of their own. After all connections
// have carried a message each way they stand idle for two seconds.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"hardtack/bench/msg/trip"
	"hardtack/msg"
	_ "hardtack/msg/ump"
)

func main() {
	n := flag.Int("n", 10000, "how many connections")
	clients := flag.Int("clients", 2, "from how many processes")
	dial := flag.String("dial", "", "be a client of the server in this directory")
	flag.Parse()
	var err error
	if *dial != "" {
		err = client(*dial, *n)
	} else {
		err = server(*n, *clients)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "crowd:", err)
		os.Exit(1)
	}
}

func client(dir string, n int) error {
	ctx := context.Background()
	var all []*trip.Conn
	for i := range n {
		c, err := trip.Connect(ctx, "crowd", &msg.Options{Resolver: msg.Directory(dir)})
		if err != nil {
			return fmt.Errorf("connection %d: %w", i, err)
		}
		if err := c.SendSmall(ctx, &trip.Small{Seq: uint64(i)}); err != nil {
			return err
		}
		if _, err := c.Recv(ctx); err != nil {
			return err
		}
		all = append(all, c)
	}
	fmt.Println("ready")
	os.Stdin.Read(make([]byte, 1)) // until the server has looked
	runtime.KeepAlive(all)
	return nil
}

func server(n, clients int) error {
	dir, err := os.MkdirTemp("", "crowd-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()
	s, err := trip.Export(ctx, "crowd", &msg.Options{Resolver: msg.Directory(dir)})
	if err != nil {
		return err
	}
	before := memory()
	go func() {
		for {
			c, err := s.Accept(ctx)
			if err != nil {
				return
			}
			go func() { // one goroutine a connection, as programs have
				for {
					m, err := c.Recv(ctx)
					if err != nil {
						return
					}
					if c.Send(ctx, m) != nil {
						return
					}
				}
			}()
		}
	}()
	start := time.Now()
	for range clients {
		kid := exec.Command("/proc/self/exe", "-dial", dir, "-n", fmt.Sprint(n/clients))
		kid.Stderr = os.Stderr
		kid.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		hold, err := kid.StdinPipe()
		if err != nil {
			return err
		}
		defer kid.Wait()
		defer hold.Close()
		out, err := kid.StdoutPipe()
		if err != nil {
			return err
		}
		if err := kid.Start(); err != nil {
			return err
		}
		defer out.Close()
		b := make([]byte, 6)
		if _, err := out.Read(b); err != nil || !strings.HasPrefix(string(b), "ready") {
			return fmt.Errorf("a client failed: %w", err)
		}
	}
	took := time.Since(start)
	after := memory()
	var a, b syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &a)
	time.Sleep(2 * time.Second)
	syscall.Getrusage(syscall.RUSAGE_SELF, &b)
	cpu := time.Duration(b.Utime.Nano() + b.Stime.Nano() - a.Utime.Nano() - a.Stime.Nano())
	fmt.Printf("%d connections in %v; %.1f KiB each in the server; %v of processor time in 2 s idle\n",
		n, took.Round(time.Millisecond), float64(after-before)/float64(n), cpu.Round(time.Millisecond))
	return nil
}

// memory is the resident memory of this process in KiB.
func memory() int {
	debug.FreeOSMemory()
	text, _ := os.ReadFile("/proc/self/status")
	for _, line := range strings.Split(string(text), "\n") {
		var kib int
		if _, err := fmt.Sscanf(line, "VmRSS: %d kB", &kib); err == nil {
			return kib
		}
	}
	return 0
}
