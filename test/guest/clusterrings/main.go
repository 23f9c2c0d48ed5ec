// Command clusterrings runs on a machine with three kernels, whose programs share rings; as
// /helper it is those programs.
package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	abi "hardtack/abi/cluster"
	"hardtack/idl/ping"
	"hardtack/msg"
	transport "hardtack/msg/cluster"
)

func main() {
	go func() { // what is closed stays mapped until the collector has seen it
		for ; ; time.Sleep(100 * time.Millisecond) {
			runtime.GC()
		}
	}()
	if filepath.Base(os.Args[0]) == "helper" {
		helper(os.Args[1:])
		return
	}
	runner()
}

// wrong says what does not work; the test looks for it.
func wrong(what string, args ...any) { fmt.Printf("WRONG "+what+"\n", args...) }

// names are services in all clusters.
func names() *msg.Options {
	return &msg.Options{Resolver: transport.Resolver(msg.Directory("/tmp/names")), Schemes: []string{"unix", "cluster"}, Wait: 5 * time.Second}
}

func helper(args []string) {
	switch args[0] {
	case "nothing":
	case "serve":
		serve(args[1])
	case "ask":
		n, _ := strconv.Atoi(args[2])
		if err := ask(args[1], n); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	case "copies":
		if err := copies(args[1]); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	case "hostile":
		n, _ := strconv.Atoi(args[2])
		if err := nonsense(args[1], n); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	case "deaf":
		if err := deaf(args[1]); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	case "din":
		n, _ := strconv.Atoi(args[2])
		if err := din(n, args[1]); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	case "foreign":
		b, _ := os.ReadFile("/proc/hardtack/protection")
		fmt.Printf("%s", b)
	}
}

// serve answers pings under a name that all clusters know.
func serve(name string) {
	ctx := context.Background()
	s, err := ping.Export(ctx, name, names())
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
			defer c.Close()
			for m, err := range c.All(ctx) {
				p, ok := m.(*ping.Ping)
				if err != nil || !ok || c.Send(ctx, &ping.Pong{ClientID: p.ClientID, MsgID: p.MsgID}) != nil {
					return
				}
			}
		}()
	}
}

// ask sends pings; every third time in a row, so that rings fill.
func ask(name string, n int) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	c, err := ping.Connect(ctx, name, names())
	if err != nil {
		return err
	}
	defer c.Close()
	return rounds(ctx, c, n)
}

func rounds(ctx context.Context, c *ping.Conn, n int) error {
	for i := range n {
		row := 1
		if i%3 == 0 {
			row = 200
		}
		sent := make(chan error, 1)
		go func() {
			for k := range row {
				if err := c.Send(ctx, &ping.Ping{ClientID: uint32(i), MsgID: uint32(k)}); err != nil {
					sent <- err
					return
				}
			}
			sent <- nil
		}()
		for k := range row {
			m, err := c.Recv(ctx)
			if err != nil {
				return err
			}
			if p, ok := m.(*ping.Pong); !ok || p.ClientID != uint32(i) || p.MsgID != uint32(k) {
				return fmt.Errorf("round %d, %d: %v", i, k, m)
			}
		}
		if err := <-sent; err != nil {
			return err
		}
	}
	return nil
}

// copies has the kernel copy to and from rings.
func copies(name string) error {
	f, err := os.OpenFile(abi.Device, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	b := make([]byte, abi.RingAddressSize)
	copy(b[4:], name)
	binary.LittleEndian.PutUint32(b[abi.AddressSize:], 4)
	ioctl := func(request, arg uintptr) (int, error) { return ioctl(f, request, arg) }
	if err := connect(f, b); err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	if n, err := ioctl(abi.RingPages, 0); n != 4 || err != nil {
		return fmt.Errorf("%d pages, %v", n, err)
	}
	fd, err := ioctl(abi.Rings, syscall.O_NONBLOCK)
	if err != nil {
		return fmt.Errorf("rings: %w", err)
	}
	if _, err := ioctl(abi.Rings, 0); err != syscall.EBUSY {
		return fmt.Errorf("rings again: %v", err)
	}
	mem, err := syscall.Mmap(fd, 0, 8*4096, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		return fmt.Errorf("mmap: %w", err)
	}
	if !bytes.Equal(mem, make([]byte, len(mem))) {
		return errors.New("new rings are not zero")
	}
	for i := range mem {
		mem[i] = byte(i * 7)
	}
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	go w.Write(mem)
	got := make([]byte, len(mem))
	if _, err := io.ReadFull(r, got); err != nil || !bytes.Equal(got, mem) {
		return fmt.Errorf("the kernel reads other bytes, %v", err)
	}
	for i := range got {
		got[i] ^= 0xff
	}
	go w.Write(got)
	if _, err := io.ReadFull(r, mem); err != nil || !bytes.Equal(got, mem) {
		return fmt.Errorf("the kernel writes other bytes, %v", err)
	}
	if n, err := syscall.Write(fd, []byte{1}); n != 1 || err != nil {
		return fmt.Errorf("ring: %d, %v", n, err)
	}
	// A child shares them, and they stay when the files are closed.
	syscall.Close(fd)
	f.Close()
	mem[5] = 42
	if mem[5] != 42 {
		return errors.New("rings have gone")
	}
	return nil
}

// there is a command in a cluster.
func there(cluster int, args ...string) *exec.Cmd {
	return exec.Command("/sbin/cluster", append([]string{"run", strconv.Itoa(cluster), "--", "/helper"}, args...)...)
}

// started starts a command and waits until it is ready.
func started(c *exec.Cmd) *exec.Cmd {
	out, _ := c.StdoutPipe()
	if err := c.Start(); err != nil {
		wrong("%v: %v", c, err)
	}
	b := make([]byte, 6)
	if _, err := io.ReadFull(out, b); string(b) != "ready\n" {
		wrong("%v says %q, %v", c, b, err)
	}
	return c
}

// awaitRings waits until the first cluster lends so many frames.
func awaitRings(lent int) {
	var b []byte
	for range 6000 {
		if b, _ = os.ReadFile("/proc/hardtack/rings"); string(b) == fmt.Sprintf("lent %d mapped 0\n", lent) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	wrong("rings: %s, not %d", b, lent)
}

func runner() {
	for _, i := range []int{1, 2} {
		for tries := 0; there(i, "nothing").Run() != nil; tries++ {
			if tries > 3000 {
				wrong("cluster %d runs no programs", i)
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
	go serve("zero")
	one, two := started(there(1, "serve", "one")), started(there(2, "serve", "two"))
	talks()
	anywhere()
	hostile()
	bells()
	copied()
	ends(one)
	storm()
	moves()
	foreign()
	two.Process.Kill()
	two.Wait()
	fmt.Println("the end")
}

// talks: every pair of clusters, and all at a time.
func talks() {
	ctx := context.Background()
	c, err := ping.Connect(ctx, "one", names())
	if err != nil {
		wrong("connect: %v", err)
		return
	}
	awaitRings(2)
	if err := rounds(ctx, c, 50); err != nil {
		wrong("from 0 to 1: %v", err)
	}
	c.Close()
	awaitRings(0)
	var all []*exec.Cmd
	for _, w := range []struct {
		from int
		to   string
	}{{1, "zero"}, {1, "two"}, {2, "one"}, {2, "zero"}} {
		c := there(w.from, "ask", w.to, "50")
		c.Stdout, c.Stderr = os.Stdout, os.Stdout
		if err := c.Start(); err != nil {
			wrong("%v: %v", c, err)
		}
		all = append(all, c)
	}
	if err := ask("two", 50); err != nil {
		wrong("from 0 to 2: %v", err)
	}
	for _, c := range all {
		if err := c.Wait(); err != nil {
			wrong("%v: %v", c, err)
		}
	}
	awaitRings(0)
	fmt.Println("talks")
}

// anywhere: the example, unchanged, in two clusters.
func anywhere() {
	env := append(os.Environ(), "HARDTACK_MSG_DIR=/tmp/names")
	server := exec.Command("/sbin/cluster", "run", "1", "--", "/anywhere", "serve", "cluster")
	server.Env = env
	out, _ := server.StdoutPipe()
	if err := server.Start(); err != nil {
		wrong("the example: %v", err)
		return
	}
	b := make([]byte, 7)
	if _, err := io.ReadFull(out, b); string(b) != "serving" {
		wrong("the example says %q, %v", b, err)
	}
	c := exec.Command("/anywhere", "ask", "cluster", "50")
	c.Env = env
	if got, err := c.CombinedOutput(); string(got) != "50 round trips over cluster\n" || err != nil {
		wrong("the example: %q, %v", got, err)
	}
	server.Process.Kill()
	server.Wait()
	awaitRings(0)
	fmt.Println("anywhere")
}

// scribble writes nonsense into the rings of this process.
func scribble(r *rand.Rand, times int) error {
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return err
	}
	mem, err := os.OpenFile("/proc/self/mem", os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer mem.Close()
	for line := range strings.Lines(string(maps)) {
		if !strings.Contains(line, " rw-s ") {
			continue
		}
		var from, to int64
		if _, err := fmt.Sscanf(line, "%x-%x", &from, &to); err != nil {
			return err
		}
		for range times {
			b := make([]byte, 8)
			binary.LittleEndian.PutUint64(b, []uint64{0, 1, r.Uint64(), ^uint64(0), 1 << 63, uint64(r.Uint32N(1000))}[r.IntN(6)])
			at := from + r.Int64N((to-from)/8)*8
			if r.IntN(2) == 0 { // mostly where it matters
				at = from + r.Int64N(2)*4096 + r.Int64N(64)*8
			}
			if _, err := mem.WriteAt(b, at); err != nil {
				return err
			}
		}
		return nil
	}
	return errors.New("no rings are mapped")
}

// nonsense makes a connection and writes nonsense into its rings, until it ends.
func nonsense(name string, seed int) error {
	ctx := context.Background()
	r := rand.New(rand.NewPCG(uint64(seed), 3))
	c, err := ping.Connect(ctx, name, names())
	if err != nil {
		return err
	}
	defer c.Close()
	for range 20 {
		limit, stop := context.WithTimeout(ctx, 20*time.Millisecond)
		c.Send(limit, &ping.Ping{ClientID: 1})
		err := scribble(r, 20)
		if err == nil {
			_, err = c.Recv(limit)
		}
		stop()
		if c.Err() != nil { // the rings may be unmapped by now
			return nil
		}
		if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			return err
		}
	}
	return nil
}

// hostile: nonsense in the rings ends a connection at worst, and no other one.
func hostile() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	fine, err := ping.Connect(ctx, "two", names())
	if err != nil {
		wrong("connect: %v", err)
		return
	}
	for seed := range 20 {
		if out, err := exec.Command("/helper", "hostile", "one", strconv.Itoa(seed)).CombinedOutput(); err != nil || len(out) > 0 {
			wrong("hostile: %s %v", out, err)
		}
	}
	if err := rounds(ctx, fine, 20); err != nil {
		wrong("beside a hostile peer: %v", err)
	}
	fine.Close()
	if err := ask("one", 20); err != nil {
		wrong("after a hostile peer: %v", err)
	}
	awaitRings(0)
	fmt.Println("hostile")
}

// bells: who rings without end for a program that does not listen hardly interrupts its kernel.
func bells() {
	server := started(there(1, "deaf", "deaf"))
	if err := din(1, "deaf"); err != nil {
		wrong("bells: %v", err)
	}
	if out, err := there(2, "din", "deaf", "1").CombinedOutput(); err != nil {
		wrong("bells from 2: %s %v", out, err)
	}
	f, fd, err := ringsOf(1, "deaf")
	if err != nil {
		wrong("bells: %v", err)
		return
	}
	if _, err := ioctlOf(fd, abi.Await, uintptr(time.Millisecond)); err != syscall.ETIMEDOUT {
		wrong("await: %v", err)
	}
	ioctlOf(fd, abi.Rouse, 0)
	if _, err := ioctlOf(fd, abi.Await, uintptr(time.Minute)); err != nil {
		wrong("await after rouse: %v", err)
	}
	go func() {
		time.Sleep(50 * time.Millisecond)
		server.Process.Kill()
		server.Wait()
	}()
	err = syscall.EINTR
	for err == syscall.EINTR { // the server's end is a signal
		_, err = ioctlOf(fd, abi.Await, uintptr(time.Minute))
	}
	if err != syscall.EPIPE {
		wrong("await at the end: %v", err)
	}
	syscall.Close(fd)
	f.Close()
	awaitRings(0)
	fmt.Println("bells")
}

// ringsOf connects to a name, and returns the channel and its rings.
func ringsOf(cluster int, name string) (f *os.File, fd int, err error) {
	if f, err = os.OpenFile(abi.Device, os.O_RDWR, 0); err != nil {
		return nil, 0, err
	}
	b := make([]byte, abi.RingAddressSize)
	binary.LittleEndian.PutUint32(b, uint32(cluster))
	copy(b[4:], name)
	binary.LittleEndian.PutUint32(b[abi.AddressSize:], 1)
	if err := connect(f, b); err != nil {
		return nil, 0, fmt.Errorf("connect: %w", err)
	}
	fd, err = ioctl(f, abi.Rings, 0)
	return f, fd, err
}

// interruptions is how often devices and other kernels have interrupted this one.
func interruptions() (n uint64) {
	b, _ := os.ReadFile("/proc/interrupts")
	for line := range strings.Lines(string(b)) {
		var k, count uint64
		if i, _ := fmt.Sscanf(line, "%d: %d", &k, &count); i == 2 {
			n += count
		}
	}
	return n
}

// deaf has rings with who connects, and does not hear them. It tells how often its kernel was interrupted
// when it is asked.
func deaf(name string) error {
	f, err := os.OpenFile(abi.Device, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	b := make([]byte, abi.RingAddressSize)
	copy(b[4:], name)
	if err := request(f, abi.Listen, b); err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	fmt.Println("ready")
	for {
		fd, err := ioctl(f, abi.Accept, 0)
		if err != nil {
			return fmt.Errorf("accept: %w", err)
		}
		c := os.NewFile(uintptr(fd), "channel")
		rings, err := ioctl(c, abi.Rings, 0)
		if err != nil {
			return fmt.Errorf("rings: %w", err)
		}
		for {
			if n, _ := c.Read(b[:1]); n == 0 {
				break
			}
			c.Write(binary.LittleEndian.AppendUint64(nil, interruptions()))
		}
		syscall.Close(rings)
		c.Close()
	}
}

// din rings for deaf without end.
func din(cluster int, name string) error {
	f, fd, err := ringsOf(cluster, name)
	if err != nil {
		return err
	}
	defer f.Close()
	defer syscall.Close(fd)
	count := func() uint64 {
		f.Write([]byte{1})
		b := make([]byte, 8)
		io.ReadFull(f, b)
		return binary.LittleEndian.Uint64(b)
	}
	before := count()
	for range 200000 {
		if n, err := syscall.Write(fd, []byte{1}); n != 1 || err != nil {
			return fmt.Errorf("ring: %d, %v", n, err)
		}
	}
	if n := count() - before; n > 1000 {
		return fmt.Errorf("%d interrupts", n)
	}
	return nil
}

func copied() {
	raw := started(there(1, "serve", "raw"))
	if err := copies("raw"); err == nil {
		wrong("cluster 0 has connected to itself")
	}
	for from, to := range map[int]string{1: "zero", 2: "zero"} {
		if out, err := there(from, "copies", to).CombinedOutput(); err != nil {
			wrong("copies from %d: %s %v", from, out, err)
		}
	}
	raw.Process.Kill()
	raw.Wait()
	awaitRings(0)
	fmt.Println("copies")
}

// ends: processes and clusters die while they have rings.
func ends(one *exec.Cmd) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	c, err := ping.Connect(ctx, "one", names())
	if err != nil {
		wrong("connect: %v", err)
		return
	}
	if err := c.Send(ctx, &ping.Ping{}); err != nil {
		wrong("send: %v", err)
	}
	c.Recv(ctx)
	one.Process.Kill()
	one.Wait()
	if _, err := c.Recv(ctx); !errors.Is(err, msg.ErrPeerGone) {
		wrong("after the server's end: %v", err)
	}
	c.Close()
	awaitRings(0)

	one = started(there(1, "serve", "one"))
	if c, err = ping.Connect(ctx, "one", names()); err != nil {
		wrong("connect: %v", err)
		return
	}
	third := there(2, "ask", "one", "1000000")
	third.Start()
	awaitRings(4)
	os.WriteFile("/proc/hardtack/clusters", []byte("kill 1"), 0)
	if _, err := c.Recv(ctx); !errors.Is(err, msg.ErrPeerGone) {
		wrong("after the cluster's end: %v", err)
	}
	if third.Wait() == nil {
		wrong("a program in cluster 2 has not heard of the end of 1")
	}
	one.Wait()
	c.Close()
	awaitRings(0)
	fmt.Println("ends")
}

// storm: connections come and go while a cluster dies again and again.
func storm() {
	r := rand.New(rand.NewPCG(1, 1))
	for range 5 {
		os.WriteFile("/proc/hardtack/clusters", []byte("restart 1"), 0)
		for tries := 0; there(1, "nothing").Run() != nil; tries++ {
			if tries > 3000 {
				wrong("cluster 1 runs no programs")
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
		server := there(1, "serve", "one")
		server.Start()
		var all []*exec.Cmd
		for _, w := range []struct {
			from int
			to   string
		}{{1, "two"}, {1, "zero"}, {2, "one"}, {2, "one"}} {
			c := there(w.from, "ask", w.to, "1000000")
			c.Start()
			all = append(all, c)
		}
		done := make(chan bool)
		go func() {
			ask("one", 1000000)
			close(done)
		}()
		time.Sleep(time.Duration(r.IntN(300)) * time.Millisecond)
		os.WriteFile("/proc/hardtack/clusters", []byte("kill 1"), 0)
		for _, c := range all {
			c.Process.Kill()
			c.Wait()
		}
		server.Wait()
		<-done
	}
	awaitRings(0)
	if err := ask("two", 20); err != nil {
		wrong("after a storm: %v", err)
	}
	fmt.Println("storm")
}

// moves: memory moves to a cluster that has mapped single frames beside it, and back.
func moves() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	c, err := ping.Connect(ctx, "two", names())
	if err != nil {
		wrong("connect: %v", err)
		return
	}
	defer c.Close()
	for _, what := range []string{"memory 32M 0 2", "memory 32M 2 0"} {
		if err := os.WriteFile("/proc/hardtack/clusters", []byte(what), 0); err != nil {
			wrong("%s: %v", what, err)
		}
		if err := rounds(ctx, c, 10); err != nil {
			wrong("after %s: %v", what, err)
		}
		if err := ask("two", 10); err != nil {
			wrong("after %s: %v", what, err)
		}
	}
	fmt.Println("moves")
}

// foreign: nobody maps what he should not.
func foreign() {
	c, err := ping.Connect(context.Background(), "two", names())
	if err != nil {
		wrong("connect: %v", err)
		return
	}
	defer c.Close()
	out, err := there(2, "foreign").Output()
	if err != nil || !strings.Contains(string(out), "foreign 0") {
		wrong("cluster 2: %s, %v", out, err)
	}
	if b, _ := os.ReadFile("/proc/hardtack/protection"); !strings.Contains(string(b), "foreign 0") {
		wrong("cluster 0: %s", b)
	}
}
