// Command crowd opens many connections to one server and prints what an idle one
// costs: memory of the server and processor time.
//
//	crowd [-n 10000] [-clients 2] [-server go|FILE]
//
// The server, this program again or FILE, which is compiled from c/server.c, and
// the clients are processes of their own. After all connections have carried a
// message each way they stand idle for two seconds; then each carries another.
// The line printed is: connections, bytes each in the server (of Go, after its
// collector has given back what is garbage), milliseconds of the
// server's processor time in two idle seconds, milliseconds to open all, and
// milliseconds until all had an answer again.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	"hardtack/bench/msg/child"
	"hardtack/idl/ping"
	"hardtack/msg"
	_ "hardtack/msg/ump"
)

func main() {
	n := flag.Int("n", 10000, "how many connections")
	clients := flag.Int("clients", 2, "from how many processes")
	server := flag.String("server", "go", "go, or the C server's program")
	dir := flag.String("dir", "", "where the sockets are; for this program's own use")
	role := flag.String("role", "", "client or serve; for this program's own use")
	flag.Parse()
	var err error
	switch *role {
	case "client":
		err = client(*dir, *n)
	case "serve":
		err = serve(*dir)
	default:
		err = measure(*n, *clients, *server)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "crowd:", err)
		os.Exit(1)
	}
}

func options(dir string) *msg.Options { return &msg.Options{Resolver: msg.Directory(dir)} }

// serve answers pings until it is killed.
func serve(dir string) error {
	ctx := context.Background()
	s, err := ping.Export(ctx, "crowd", options(dir))
	if err != nil {
		return err
	}
	fmt.Println("ready")
	go func() { // asked to, it gives back what is garbage
		b := make([]byte, 1)
		for n, _ := os.Stdin.Read(b); n > 0; n, _ = os.Stdin.Read(b) {
			debug.FreeOSMemory()
			fmt.Println("collected")
		}
	}()
	for {
		c, err := s.Accept(ctx)
		if err != nil {
			return err
		}
		go func() { // one goroutine per connection, as programs have
			defer c.Close()
			for {
				m, err := c.Recv(ctx)
				if err != nil {
					return
				}
				if p, ok := m.(*ping.Ping); !ok || c.Send(ctx, &ping.Pong{ClientID: p.ClientID, MsgID: p.MsgID}) != nil {
					return
				}
			}
		}()
	}
}

// client opens n connections, says so, and uses each again when it is told to.
func client(dir string, n int) error {
	ctx := context.Background()
	var all []*ping.Conn
	trip := func(c *ping.Conn, i int) error {
		if err := c.SendPing(ctx, &ping.Ping{MsgID: uint32(i)}); err != nil {
			return err
		}
		m, err := c.Recv(ctx)
		if err != nil {
			return err
		}
		if p, ok := m.(*ping.Pong); !ok || p.MsgID != uint32(i) {
			return errors.New("another answer")
		}
		return nil
	}
	for i := range n {
		c, err := ping.Connect(ctx, "crowd", options(dir))
		if err == nil {
			err = trip(c, i)
		}
		if err != nil {
			return fmt.Errorf("connection %d: %w", i, err)
		}
		all = append(all, c)
	}
	fmt.Println("ready")
	os.Stdin.Read(make([]byte, 1))
	for i, c := range all {
		if err := trip(c, i); err != nil {
			return fmt.Errorf("connection %d after a rest: %w", i, err)
		}
	}
	fmt.Println("again")
	os.Stdin.Read(make([]byte, 1))
	return nil
}

func measure(n, clients int, server string) error {
	dir, err := os.MkdirTemp("", "crowd-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	args := []string{"-role", "serve", "-dir", dir}
	if server == "go" {
		server = "/proc/self/exe"
	} else {
		args = []string{dir}
	}
	s, err := child.Start(server, args...)
	if err != nil {
		return err
	}
	defer s.Stop()
	if err := s.Wait("ready"); err != nil {
		return err
	}
	pid := s.PID()
	before, err := memory(pid)
	if err != nil {
		return err
	}
	opened := time.Now()
	all, err := startClients(n, clients, dir)
	for _, k := range all {
		defer k.Stop()
	}
	if err != nil {
		return err
	}
	took := time.Since(opened)
	if server == "/proc/self/exe" {
		s.Go()
		if err := s.Wait("collected"); err != nil {
			return err
		}
	}
	time.Sleep(time.Second) // what is being parked is not idle yet
	after, err := memory(pid)
	if err != nil {
		return err
	}
	cpu, err := processor(pid)
	if err != nil {
		return err
	}
	time.Sleep(2 * time.Second)
	later, err := processor(pid)
	if err != nil {
		return err
	}
	woken := time.Now()
	for _, k := range all {
		k.Go()
	}
	for _, k := range all {
		if err := k.Wait("again"); err != nil {
			return err
		}
	}
	fmt.Printf("%d %d %.2f %d %d\n", n, (after-before)/int64(n), (later-cpu).Seconds()*1000, took.Milliseconds(), time.Since(woken).Milliseconds())
	return nil
}

// memory is the resident memory of a process in bytes, what it shares included.
func memory(pid int) (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for _, line := range strings.Split(string(text), "\n") {
		var kib int64
		if _, err := fmt.Sscanf(line, "VmRSS: %d kB", &kib); err == nil {
			return kib << 10, nil
		}
	}
	return 0, errors.New("no VmRSS")
}

// processor is the time that all threads of a process have run.
func processor(pid int) (d time.Duration, err error) {
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil || len(tasks) == 0 {
		return 0, fmt.Errorf("process %d has no times: %w", pid, err)
	}
	for _, t := range tasks {
		text, err := os.ReadFile(t)
		if err != nil {
			continue // the thread has ended
		}
		var ns int64
		fmt.Sscan(string(text), &ns)
		d += time.Duration(ns)
	}
	return d, nil
}

// startClients starts the processes that connect, and waits until they have. It returns
// those that were started, even with an error.
func startClients(n, clients int, dir string) (all []*child.Child, err error) {
	for range clients {
		k, err := child.Start("/proc/self/exe", "-role", "client", "-dir", dir, "-n", fmt.Sprint(n/clients))
		if err != nil {
			return all, err
		}
		all = append(all, k)
	}
	for _, k := range all {
		if err := k.Wait("ready"); err != nil {
			return all, err
		}
	}
	return all, nil
}
