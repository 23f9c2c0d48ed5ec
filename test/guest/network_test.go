package guest

import (
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// server serves each connection on a port of this machine's loopback, which guests reach
// as their gateway's, and returns the port. The test's end closes all of them.
func server(t *testing.T, serve func(net.Conn)) string {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	t.Cleanup(func() { close(done); l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				over := make(chan struct{})
				defer close(over)
				go func() {
					select {
					case <-done:
						c.Close()
					case <-over:
					}
				}()
				serve(c)
			}()
		}
	}()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
}

// TestNetworkShare has a user take ports, and what the network keeps for connections with
// another machine. HARDTACK_STRESS names a single way, HARDTACK_STORM is for how
// many seconds then.
func TestNetworkShare(t *testing.T) {
	needGuest(t)
	if _, err := exec.LookPath("gcc"); err != nil {
		t.Skip("needs gcc: install gcc and libc6-dev")
	}
	t.Parallel()
	repo, dir := repository(t), t.TempDir()
	if err := cBuild(filepath.Join(dir, "network"), filepath.Join(repo, "test", "guest", "stress", "network.c")); err != nil {
		t.Fatal(err)
	}
	tool := command(t, repo, dir)
	root := guestRoot(t, dir, "network")
	argv := []string{"/network",
		server(t, func(c net.Conn) { io.Copy(c, c) }),
		server(t, func(c net.Conn) {
			c.(*net.TCPConn).SetReadBuffer(1 << 12)
			time.Sleep(time.Minute)
		}),
		server(t, func(c net.Conn) {
			for page := make([]byte, 1<<16); ; {
				if _, err := c.Write(page); err != nil {
					return
				}
			}
		}),
	}
	if only := os.Getenv("HARDTACK_STRESS"); only != "" {
		argv = append(argv, only)
		if long := os.Getenv("HARDTACK_STORM"); long != "" {
			argv = append(argv, long+"000")
		}
	}
	out, err := inGuest(t, tool, root, 6*time.Minute, []string{"--memory", "128M"}, argv...)
	if err != nil || !strings.Contains(out, "network: ok") {
		t.Errorf("network: %v\n%s", err, words(out, 60))
	}
	// Who is killed holds much of what is short: a load that limits should have stopped is no
	// reason to kill those who hold next to nothing.
	for _, k := range killedFor.FindAllStringSubmatch(out, -1) {
		pages, _ := strconv.Atoi(k[1])
		kernel, _ := strconv.Atoi(k[2])
		if pages+kernel < 1024 {
			t.Errorf("killed for %d KiB: %s", pages+kernel, k[0])
		}
	}
	t.Logf("%s", tail(out, 15))
}

// killedFor is the kernel's line about a process that it kills for memory.
var killedFor = regexp.MustCompile(`out of memory: process \d+ .* it has (\d+) KiB of pages, and about (\d+) KiB in the kernel`)
