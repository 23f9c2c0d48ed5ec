package tcp

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	osbench "hardtack/bench/os"
)

const typeIPv6 = 0x86dd

// advertise sends what a router says: itself for so many seconds, and a prefix for so many, of
// which the hosts of the link have addresses.
func (c *cable) advertise(router, prefix string, life uint16, prefixLife uint32) {
	from, to := netip.MustParseAddr(router).As16(), netip.MustParseAddr("ff02::1").As16()
	m := []byte{134, 0, 0, 0, 64, 0, byte(life >> 8), byte(life), 0, 0, 0, 0, 0, 0, 0, 0, 3, 4, 64, 0xc0}
	m = be.AppendUint32(be.AppendUint32(m, prefixLife), prefixLife/2)
	m = append(append(m, 0, 0, 0, 0), netip.MustParseAddr(prefix).AsSlice()...)
	ends := append(from[:], to[:]...)
	be.PutUint16(m[2:], ^sum(m, uint32(sum(ends, 0))+58+uint32(len(m))))
	c.write(typeIPv6, append(append([]byte{0x60, 0, 0, 0, 0, byte(len(m)), 58, 255}, ends...), m...))
}

// inet6 are the lines of eth0 in a file of /proc/net.
func inet6(t *testing.T, c *cable, name string) (lines []string) {
	t.Helper()
	text, err := c.ask(hopeless, "file /proc/net/"+name)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(text) {
		if strings.HasSuffix(line, "eth0\n") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines
}

// TestRouters has routers advertise themselves: the addresses are as Linux 6.1 has them (-linux runs
// it there), and who advertises without an end leaves the machine what it needs.
func TestRouters(t *testing.T) {
	system := osbench.OnHardtack
	if *linux {
		system = osbench.OnLinux
	}
	c := boot(t, system)
	if _, err := c.ask(hopeless, "sysctl /proc/sys/net/ipv6/conf/eth0/accept_ra 1"); err != nil {
		t.Fatal(err)
	}
	await := func(want string) {
		t.Helper()
		var got []string
		for began := time.Now(); time.Since(began) < hopeless; {
			if got = inet6(t, c, "if_inet6"); strings.Contains(strings.Join(got, "\n"), want) {
				return
			}
		}
		t.Fatalf("%q is not among\n%s", want, strings.Join(got, "\n"))
	}
	await("fe80000000000000505400fffe123456 02 40 20 80     eth0")
	c.advertise("fe80::77", "fd07::", 1800, 7200)
	await("fd07000000000000505400fffe123456 02 40 00 00     eth0")
	t.Log("\n" + strings.Join(inet6(t, c, "if_inet6"), "\n"))

	took := 0
	for range 2 { // the heap grows in the first
		before := free(t, c)
		for i := range number(t, "HARDTACK_TCP_ROUTERS", 20000) {
			c.advertise(fmt.Sprintf("fe80::%x", 1+i%5000), fmt.Sprintf("fd08:%x::", i%60000), uint16(i%3)*600, uint32(i%5)*1800)
			if i%64 == 63 {
				if err := c.fence(hopeless); err != nil {
					t.Fatal(err)
				}
			}
		}
		took = before - free(t, c)
	}
	count := map[string]int{}
	for _, name := range []string{"if_inet6", "ipv6_route"} {
		answer, err := c.ask(hopeless, "lines /proc/net/"+name)
		if err != nil {
			t.Fatal(err)
		}
		var n int
		if _, err := fmt.Sscan(answer, &n); err != nil {
			t.Fatalf("%q: %v", answer, err)
		}
		count[name] = n
	}
	t.Logf("%v lines, %d KiB more are used", count, took>>10)
	if !*linux && (count["if_inet6"] > 2+10 || count["ipv6_route"] > 60 || took > 16<<20) {
		t.Error("hostile routers leave too much")
	}
	x := newClient(c, ourIP, 62000, echoPort)
	if err := x.dial(hopeless); err != nil {
		t.Fatal(err)
	}
	if err := x.echo(hopeless, []byte("who is served?")); err != nil {
		t.Fatal(err)
	}
	x.hangUp()
}
