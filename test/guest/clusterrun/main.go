// Command clusterrun runs on a machine with two kernels and starts programs in the other
// one; as /helper it is those programs.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"hardtack/idl/shapes"
	"hardtack/msg"
	transport "hardtack/msg/cluster"
)

func main() {
	if filepath.Base(os.Args[0]) == "helper" {
		helper(os.Args[1:])
		return
	}
	runner()
}

// await waits until /proc/hardtack/clusters has a text.
func await(text string) {
	for range 3000 {
		if b, _ := os.ReadFile("/proc/hardtack/clusters"); strings.Contains(string(b), text) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	wrong("clusters lacks %q", text)
}

// wrong says what does not work; the test looks for it.
func wrong(what string, args ...any) { fmt.Printf("WRONG "+what+"\n", args...) }

// there is a command in cluster 1.
func there(args ...string) *exec.Cmd {
	return exec.Command("/sbin/cluster", append([]string{"run", "1", "--"}, args...)...)
}

// helper is a program that runs in another cluster.
func helper(args []string) {
	switch args[0] {
	case "facts":
		dir, _ := os.Getwd()
		mask := syscall.Umask(0)
		fmt.Printf("%q %s %s %o", args, os.Getenv("COLOUR"), dir, mask)
	case "cat":
		fmt.Fprint(os.Stderr, "to the error output")
		io.Copy(os.Stdout, os.Stdin)
	case "exit":
		os.Exit(7)
	case "die":
		syscall.Kill(os.Getpid(), syscall.SIGKILL)
	case "term":
		c := make(chan os.Signal, 1)
		signal.Notify(c, syscall.SIGTERM)
		fmt.Println("ready")
		<-c
		os.Exit(9)
	case "sleep":
		fmt.Println("ready")
		time.Sleep(time.Hour)
	case "eat":
		for all := [][]byte{}; ; {
			b := make([]byte, 1<<20)
			for i := 0; i < len(b); i += 4096 {
				b[i] = 1
			}
			all = append(all, b)
		}
	case "yes":
		for b := make([]byte, 10000); ; {
			if _, err := os.Stdout.Write(b); err != nil {
				return
			}
		}
	case "left": // the programs that run here, but for process 1 and this one
		entries, _ := filepath.Glob("/proc/[0-9]*/cmdline")
		n := 0
		for _, e := range entries {
			if b, err := os.ReadFile(e); err == nil && strings.HasPrefix(string(b), "/helper") {
				n++
			}
		}
		fmt.Print(n - 1)
	case "serve":
		serve()
	}
}

// serve sends back what it gets, under a name that all clusters know.
func serve() {
	ctx := context.Background()
	s, err := shapes.Export(ctx, "echo", names())
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("ready")
	for {
		c, err := s.Accept(ctx)
		if err != nil {
			return
		}
		go func() {
			for m, err := range c.All(ctx) {
				if err != nil || c.Send(ctx, m) != nil {
					return
				}
			}
		}()
	}
}

// names are services in all clusters.
func names() *msg.Options {
	return &msg.Options{Resolver: transport.Resolver(msg.Directory("/tmp/names")), Schemes: []string{"unix", "cluster"}}
}

// runner is process 1 of cluster 0, and runs programs in cluster 1.
func runner() {
	await("1 running")
	for range 3000 {
		if there("/helper", "facts").Run() == nil {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	plain()
	signals()
	refused()
	channels()
	hunger()
	death()
	fmt.Println("the end")
}

// plain: arguments, environment, directory, files and status are as at home.
func plain() {
	c := there("/helper", "facts", "a b", "")
	c.Env, c.Dir = []string{"COLOUR=green", "PATH=/"}, "/tmp"
	syscall.Umask(0o27)
	if out, err := c.CombinedOutput(); string(out) != `["facts" "a b" ""] green /tmp 27` || err != nil {
		wrong("facts: %q, %v", out, err)
	}
	c = there("helper", "facts")
	c.Env = []string{"PATH=/nowhere:/"}
	if out, err := c.CombinedOutput(); !strings.HasPrefix(string(out), `["facts"]`) || err != nil {
		wrong("the program's path: %q, %v", out, err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{0, 1, 70000, 3 << 20} {
		in := make([]byte, n)
		for i := range in {
			in[i] = byte(r.Uint32())
		}
		var out, text bytes.Buffer
		c := there("/helper", "cat")
		c.Stdin, c.Stdout, c.Stderr = bytes.NewReader(in), &out, &text
		if err := c.Run(); err != nil || !bytes.Equal(in, out.Bytes()) || text.String() != "to the error output" {
			wrong("cat: %d bytes of %d, %q, %v", out.Len(), n, text.String(), err)
		}
	}
	if s := status(there("/helper", "exit")); !s.Exited() || s.ExitStatus() != 7 {
		wrong("exit: %v", s)
	}
	if s := status(there("/helper", "die")); !s.Signaled() || s.Signal() != syscall.SIGKILL {
		wrong("die: %v", s)
	}
	fmt.Println("plain programs")
}

func status(c *exec.Cmd) syscall.WaitStatus {
	c.Run()
	return c.ProcessState.Sys().(syscall.WaitStatus)
}

// started starts a command and waits until it is ready.
func started(c *exec.Cmd) *exec.Cmd {
	out, _ := c.StdoutPipe()
	if err := c.Start(); err != nil {
		wrong("%v: %v", c, err)
	}
	if b := make([]byte, 6); true {
		if _, err := io.ReadFull(out, b); string(b) != "ready\n" {
			wrong("%v says %q, %v", c, b, err)
		}
	}
	return c
}

func signals() {
	c := started(there("/helper", "term"))
	c.Process.Signal(syscall.SIGTERM)
	c.Wait()
	if c.ProcessState.ExitCode() != 9 {
		wrong("term: %v", c.ProcessState)
	}
	c = started(there("/helper", "sleep"))
	c.Process.Signal(syscall.SIGHUP)
	c.Wait()
	if s := c.ProcessState.Sys().(syscall.WaitStatus); !s.Signaled() || s.Signal() != syscall.SIGHUP {
		wrong("hangup: %v", c.ProcessState)
	}
	// A program does not outlive the one that stands for it, not even if that is killed.
	c = started(there("/helper", "sleep"))
	c.Process.Kill()
	c.Wait()
	none := false
	for range 1000 {
		if out, _ := there("/helper", "left").Output(); string(out) == "0" {
			none = true
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if !none {
		wrong("a program is left")
	}
	fmt.Println("signals")
}

func refused() {
	for want, c := range map[int]*exec.Cmd{
		127: there("/nothing"),
		255: exec.Command("/sbin/cluster", "run", "5", "/helper", "exit"),
		2:   exec.Command("/sbin/cluster", "run", "1"),
	} {
		if c.Run(); c.ProcessState.ExitCode() != want {
			wrong("%v: %v", c, c.ProcessState)
		}
	}
	c := there("/helper", "exit")
	c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 1000, Gid: 1000}}
	out, _ := c.CombinedOutput()
	if !strings.Contains(string(out), "operation not permitted") || c.ProcessState.ExitCode() != 255 {
		wrong("another user: %q, %v", out, c.ProcessState)
	}
	fmt.Println("refusals")
}

// channels: processes of two clusters find each other by name.
func channels() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	server := started(there("/helper", "serve"))
	c, err := shapes.Connect(ctx, "echo", names())
	if err != nil {
		wrong("connect: %v", err)
		return
	}
	for i := range 200 {
		s := strings.Repeat("x", i*i)
		if err := c.Send(ctx, &shapes.MsgMsg{S: s}); err != nil {
			wrong("send: %v", err)
			return
		}
		if m, err := c.Recv(ctx); err != nil || m.(*shapes.MsgMsg).S != s {
			wrong("receive: %v", err)
			return
		}
	}
	if err := c.Send(ctx, &shapes.Caps{First: msg.Cap{File: os.Stdin}}); !errors.Is(err, msg.ErrNoCaps) {
		wrong("a descriptor: %v", err)
	}
	server.Process.Kill()
	server.Wait()
	if _, err := c.Recv(ctx); !errors.Is(err, msg.ErrPeerGone) {
		wrong("after the server's end: %v", err)
	}
	fmt.Println("channels")
}

// hunger: a cluster whose memory is gone ends the program that has it, goes on itself, and
// nobody else notices.
func hunger() {
	server := started(there("/helper", "term"))
	if s := status(there("/helper", "eat")); !s.Signaled() || s.Signal() != syscall.SIGKILL {
		wrong("a program that takes all memory: %v", s)
	}
	if s := status(there("/helper", "exit")); s.ExitStatus() != 7 {
		wrong("after memory was short: %v", s)
	}
	server.Process.Signal(syscall.SIGTERM)
	server.Wait()
	if server.ProcessState.ExitCode() != 9 {
		wrong("a program beside the one that took all memory: %v", server.ProcessState)
	}
	if b, _ := os.ReadFile("/proc/hardtack/clusters"); !strings.Contains(string(b), "1 running lives 1 ") {
		wrong("the cluster: %s", b)
	}
	fmt.Println("hunger")
}

// death: who waits for a cluster that ends does not wait for ever.
func death() {
	sleeper, writer := started(there("/helper", "sleep")), there("/helper", "yes")
	blocked, _ := writer.StdoutPipe() // nobody reads
	if err := writer.Start(); err != nil {
		wrong("%v", err)
	}
	io.ReadFull(blocked, make([]byte, 100000))
	if out, err := exec.Command("/sbin/cluster", "kill", "1").CombinedOutput(); err != nil {
		wrong("kill: %s %v", out, err)
	}
	sleeper.Wait()
	if sleeper.ProcessState.ExitCode() != 255 {
		wrong("a program of a cluster that was killed: %v", sleeper.ProcessState)
	}
	io.Copy(io.Discard, blocked)
	writer.Wait()
	if writer.ProcessState.ExitCode() != 255 {
		wrong("a program that wrote: %v", writer.ProcessState)
	}
	await("1 was killed")
	exec.Command("/sbin/cluster", "restart", "1").Run()
	for range 3000 {
		if s := status(there("/helper", "exit")); s.ExitStatus() == 7 {
			fmt.Println("after a restart")
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	wrong("no programs after a restart")
}
