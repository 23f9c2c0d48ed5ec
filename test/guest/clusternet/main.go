// Command clusternet runs on a machine with three kernels, whose programs reach each other
// over TCP/IP; as /helper it is those programs.
package main

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

func main() {
	if filepath.Base(os.Args[0]) == "helper" {
		helper(os.Args[1:])
		return
	}
	runner()
}

// wrong says what does not work; the test looks for it.
func wrong(what string, args ...any) { fmt.Printf("WRONG "+what+"\n", args...) }

// there is a command in another cluster.
func there(cluster int, args ...string) *exec.Cmd {
	c := exec.Command("/sbin/cluster", append([]string{"run", fmt.Sprint(cluster), "--", "/helper"}, args...)...)
	c.Stderr = os.Stderr
	return c
}

// started is such a command, once it has said that it is ready; what it says then is last.
func started(cluster int, args ...string) (c *exec.Cmd, last *bufio.Reader) {
	c = there(cluster, args...)
	out, _ := c.StdoutPipe()
	if err := c.Start(); err != nil {
		wrong("%v", err)
	}
	last = bufio.NewReader(out)
	if line, err := last.ReadString('\n'); line != "ready\n" {
		wrong("%v says %q, %v", args, line, err)
	}
	return c, last
}

// output is what a command in another cluster writes.
func output(cluster int, args ...string) string {
	out, err := there(cluster, args...).Output()
	if err != nil {
		wrong("%v in cluster %d: %v", args, cluster, err)
	}
	return string(out)
}

// at is a cluster's address.
func at(cluster int) string { return fmt.Sprintf("10.0.3.%d", cluster+1) }

const port = ":7000"

func helper(args []string) {
	switch args[0] {
	case "yes":
	case "echo":
		l, err := net.Listen("tcp", port)
		if err != nil {
			wrong("listen: %v", err)
			return
		}
		fmt.Println("ready")
		echo(l)
	case "pump":
		pump(args[1])
	case "hang":
		c := dial(args[1])
		fmt.Println("ready")
		fmt.Println(after(c))
	case "spoof":
		spoof()
	}
}

// echo sends back what connections send.
func echo(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			io.Copy(c, c)
			c.Close()
		}()
	}
}

// dial is a connection that has echoed something.
func dial(to string) net.Conn {
	c, err := net.DialTimeout("tcp", to+port, time.Minute)
	if err != nil {
		wrong("%s: %v", to, err)
		os.Exit(1)
	}
	c.Write([]byte("x"))
	if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
		wrong("%s: no echo: %v", to, err)
	}
	return c
}

// after is how a connection ends on which nothing comes.
func after(c net.Conn) string {
	c.SetReadDeadline(time.Now().Add(5 * time.Minute))
	_, err := c.Read(make([]byte, 1))
	switch {
	case errors.Is(err, syscall.ECONNRESET):
		return "reset"
	case err == nil:
		return "a byte"
	}
	return err.Error()
}

// pump has 10 MB echoed, and compares them.
func pump(to string) {
	c := dial(to)
	defer c.Close()
	const words = 10 << 20 / 8
	go func() {
		r, w := rand.New(rand.NewPCG(1, 2)), bufio.NewWriterSize(c, 100000)
		for range words {
			w.Write(binary.LittleEndian.AppendUint64(nil, r.Uint64()))
		}
		w.Flush()
	}()
	r, in, b := rand.New(rand.NewPCG(1, 2)), bufio.NewReaderSize(c, 100000), make([]byte, 8)
	for i := range words {
		if _, err := io.ReadFull(in, b); err != nil || binary.LittleEndian.Uint64(b) != r.Uint64() {
			wrong("byte %d from %s is wrong: %v", 8*i, to, err)
			return
		}
	}
}

// spoof sends datagrams to cluster 0 in its own name and in cluster 1's.
func spoof() {
	s, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_RAW, syscall.IPPROTO_RAW)
	if err != nil {
		wrong("raw socket: %v", err)
		return
	}
	for _, from := range []byte{2, 1, 3} {
		p := append([]byte{0x45, 0, 0, 29, 0, 1, 0, 0, 64, syscall.IPPROTO_UDP, 0, 0, 10, 0, 3, from, 10, 0, 3, 1},
			0, 9, 7001>>8, 7001&255, 0, 9, 0, 0, from)
		if err := syscall.Sendto(s, p, 0, &syscall.SockaddrInet4{Addr: [4]byte{10, 0, 3, 1}}); err != nil {
			wrong("send as %d: %v", from, err)
		}
	}
}

// runner is process 1 of cluster 0.
func runner() {
	for i := 1; i <= 2; i++ {
		agent(i)
	}
	if len(os.Args) > 1 {
		count()
		fmt.Println("the end")
		return
	}
	shows()
	l, err := net.Listen("tcp", at(0)+port)
	if err != nil {
		wrong("listen: %v", err)
	}
	go echo(l)
	server, _ := started(1, "echo")
	for from, to := range []int{1, 0, 1} {
		if from == 0 {
			pump(at(to))
		} else {
			fmt.Print(output(from, "pump", at(to)))
		}
		fmt.Printf("from %d to %d\n", from, to)
	}
	names()
	death(server)
	fmt.Println("the end")
}

// agent waits until a cluster runs programs.
func agent(i int) {
	for range 3000 {
		if exec.Command("/sbin/cluster", "run", fmt.Sprint(i), "--", "/helper", "yes").Run() == nil {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	wrong("cluster %d runs no programs", i)
}

// shows: programs see the interface.
func shows() {
	i, err := net.InterfaceByName("cl0")
	if err != nil {
		wrong("%v", err)
		return
	}
	all, _ := i.Addrs()
	if !strings.Contains(fmt.Sprint(all), "10.0.3.1/24") || i.MTU != 16384 || i.Flags&net.FlagUp == 0 {
		wrong("cl0: %v %+v", all, i)
	}
	if b, _ := os.ReadFile("/proc/net/dev"); !strings.Contains(string(b), "cl0:") {
		wrong("/proc/net/dev lacks cl0:\n%s", b)
	}
}

// names: nobody sends in another's name.
func names() {
	c, err := net.ListenPacket("udp", at(0)+":7001")
	if err != nil {
		wrong("udp: %v", err)
		return
	}
	defer c.Close()
	fmt.Print(output(2, "spoof"))
	c.SetReadDeadline(time.Now().Add(time.Minute))
	b := make([]byte, 10)
	if n, from, err := c.ReadFrom(b); err != nil || n != 1 || b[0] != 3 {
		wrong("a datagram: %v, %d bytes from %v: %v", err, n, from, b)
	}
	fmt.Println("names")
}

// death: the connections of a cluster that ends are reset at once, and it is reached again
// when it has been started again.
func death(server *exec.Cmd) {
	open := dial(at(1))
	client, last := started(2, "hang", at(1))
	if err := os.WriteFile("/proc/hardtack/clusters", []byte("kill 1"), 0); err != nil {
		wrong("kill: %v", err)
	}
	if how := after(open); how != "reset" {
		wrong("a connection from 0 to a cluster that was killed: %s", how)
	}
	if how, _ := last.ReadString('\n'); how != "reset\n" {
		wrong("a connection from 2 to a cluster that was killed: %s", how)
	}
	client.Wait()
	server.Wait()
	if c, err := net.DialTimeout("tcp", at(1)+port, time.Minute); !errors.Is(err, syscall.EHOSTUNREACH) {
		wrong("dialling a cluster that was killed: %v %v", c, err)
	}
	os.WriteFile("/proc/hardtack/clusters", []byte("restart 1"), 0)
	agent(1)
	server, _ = started(1, "echo")
	pump(at(1))
	fmt.Print(output(2, "pump", at(1)))
	server.Process.Kill()
	server.Wait()
	fmt.Println("after a restart")
}
