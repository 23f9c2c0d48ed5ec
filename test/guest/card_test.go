package guest

import (
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// tapNetwork gives the test's thread a network of its own, with which it ends: a tap device tap0,
// 10.77.0.1/24, and echoes at port 7. It returns tap0's link-local address.
func tapNetwork(t *testing.T, mtu int, several bool) string {
	t.Helper()
	if f, err := os.OpenFile("/dev/net/tun", os.O_RDWR, 0); err != nil {
		t.Skipf("no tap devices: %v", err)
	} else {
		f.Close()
	}
	if _, err := exec.LookPath("ip"); err != nil {
		t.Skip("needs ip: install iproute2")
	}
	runtime.LockOSThread() // and never unlocked: the thread dies with the goroutine
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		t.Skipf("no network namespace (needs root): %v", err)
	}
	queues := ""
	if several {
		queues = " multi_queue"
	}
	for _, line := range []string{
		"link set lo up", "tuntap add dev tap0 mode tap" + queues, "link set tap0 mtu " + strconv.Itoa(mtu),
		"link set tap0 addrgenmode none", // the address that answers is the one that was asked
		"addr add 10.77.0.1/24 dev tap0", "addr add fe80::77/64 dev tap0 nodad", "link set tap0 up",
	} {
		if out, err := exec.Command("ip", strings.Fields(line)...).CombinedOutput(); err != nil {
			t.Skipf("ip %s: %v\n%s", line, err, out)
		}
	}
	l, err := net.Listen("tcp", ":7")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				io.Copy(c, c)
			}()
		}
	}()
	u, err := net.ListenPacket("udp", ":7")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { u.Close() })
	go func() {
		for b := make([]byte, 1<<16); ; {
			n, from, err := u.ReadFrom(b)
			if err != nil {
				return
			}
			u.WriteTo(b[:n], from)
		}
	}()
	return "fe80::77"
}

// greet says hello to the guest at port 80 over both families, from the network of a thread, until
// it is answered.
func greet(t *testing.T, network *os.File) {
	defer network.Close()
	runtime.LockOSThread() // for ever, as tapNetwork
	if err := unix.Setns(int(network.Fd()), unix.CLONE_NEWNET); err != nil {
		t.Error(err)
		return
	}
	i, err := net.InterfaceByName("tap0")
	if err != nil {
		t.Error(err)
		return
	}
	own := net.ParseIP("fe80::5054:ff:fe12:3456") // of QEMU's first card
	for _, sa := range []unix.Sockaddr{
		&unix.SockaddrInet4{Port: 80, Addr: [4]byte{10, 77, 0, 2}},
		&unix.SockaddrInet6{Port: 80, Addr: [16]byte(own), ZoneId: uint32(i.Index)},
	} {
		for !hello(sa) && t.Context().Err() == nil {
			time.Sleep(100 * time.Millisecond)
		}
	}
}

func hello(sa unix.Sockaddr) bool {
	family := unix.AF_INET
	if _, ok := sa.(*unix.SockaddrInet6); ok {
		family = unix.AF_INET6
	}
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	_ = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &unix.Timeval{Sec: 2})
	if unix.Connect(fd, sa) != nil {
		return false
	}
	b := []byte("hello")
	if _, err := unix.Write(fd, b); err != nil {
		return false
	}
	n, err := unix.Read(fd, b)
	return err == nil && n > 0
}

// TestCards talks over a tap device through each card, in packets of 1,500 and 9,000 bytes, over
// IPv4 and IPv6, both ways. A virtio card has a queue for each CPU.
func TestCards(t *testing.T) {
	needGuest(t)
	repo, dir := repository(t), t.TempDir()
	if err := goBuild(repo, filepath.Join(dir, "card"), "./test/guest/card"); err != nil {
		t.Fatal(err)
	}
	tool := command(t, repo, dir)
	root := guestRoot(t, dir, "card")
	for _, c := range []struct{ nic, cpus string }{{"virtio", "2"}, {"virtio", "1"}, {"e1000e", "2"}, {"e1000", "1"}} {
		for _, mtu := range []int{1500, 9000} {
			t.Run(c.nic+" "+c.cpus+" "+strconv.Itoa(mtu), func(t *testing.T) {
				host := tapNetwork(t, mtu, c.nic == "virtio" && c.cpus == "2")
				flags := []string{"--machine", "q35", "--cpus", c.cpus, "--nic", c.nic, "--mtu", strconv.Itoa(mtu), "--memory", "256M",
					"--net", "tap=tap0,address=10.77.0.2/24"}
				network, err := os.Open("/proc/thread-self/ns/net")
				if err != nil {
					t.Fatal(err)
				}
				go greet(t, network)
				out, err := inGuest(t, tool, root, 4*time.Minute, flags, "/card", strconv.Itoa(mtu), "10.77.0.1", host+"%eth0")
				if err != nil || !strings.Contains(out, "card: ok") {
					t.Errorf("%v\n%s", err, tail(out, 20))
				}
			})
		}
	}
}
