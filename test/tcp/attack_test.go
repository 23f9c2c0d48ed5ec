package tcp

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	osbench "hardtack/bench/os"
)

// hopeless is when a test gives up; no test depends on how long anything takes. A connection may
// take longer, as long as the guest sends: what is lost again and again is sent again after times
// that double, up to two minutes, here as on Linux.
const hopeless = 5 * time.Minute

// number is a test's size: what the environment says, for a longer run, or the short one.
func number(t *testing.T, name string, short int) int {
	text := os.Getenv(name)
	if text == "" {
		return short
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestAttacks holds a machine's services against what a network may send. HARDTACK_TCP_RUNS,
// HARDTACK_TCP_SYNS and HARDTACK_TCP_SLOW make it longer, HARDTACK_TCP_LOSS has every run lose as
// much (0.2 is a fifth), and -linux attacks Debian's kernel.
func TestAttacks(t *testing.T) {
	system := osbench.OnHardtack
	if *linux {
		system = osbench.OnLinux
	}
	c := boot(t, system)
	t.Run("short", func(t *testing.T) { short(t, c) })
	t.Run("spoiled", func(t *testing.T) { spoiled(t, c, number(t, "HARDTACK_TCP_RUNS", 10)) })
	t.Run("flood", func(t *testing.T) { flood(t, c, number(t, "HARDTACK_TCP_SYNS", 20000)) })
	t.Run("slow", func(t *testing.T) { slow(t, c, number(t, "HARDTACK_TCP_SLOW", 10000)) })
}

// short sends frames of every kind that end too early.
func short(t *testing.T, c *cable) {
	tcp := segment{flags: flagSYN, options: []byte{2, 4, 5, 180}}
	whole := map[uint16][]byte{
		typeIPv4: c.packet(ourIP, 0, protoTCP, 16, tcp.bytes(1, echoPort)),
		typeARP:  append([]byte{0, 1, 8, 0, 6, 4, 0, 1}, make([]byte, 20)...),
		0x86dd:   append([]byte{0x60, 0, 0, 0, 0, 20, protoTCP, 64}, make([]byte, 52)...),
		0x8100:   make([]byte, 46),
		40:       make([]byte, 40),
	}
	for kind, body := range whole {
		for n := range len(body) {
			c.write(kind, body[:n])
		}
		if err := c.fence(hopeless); err != nil {
			t.Fatalf("type %#x: %v", kind, err)
		}
	}
	for n := 1; n < ethSize; n++ { // QEMU does not pass on frames of nothing
		c.c.Write(append(be.AppendUint32(nil, uint32(n)), make([]byte, n)...))
	}
	if err := c.fence(hopeless); err != nil {
		t.Fatal(err)
	}
}

// spoiled sends bytes to and fro through a bad switch, at loss rates up to 20 %.
func spoiled(t *testing.T, c *cable, runs int) {
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("HARDTACK_TCP_SEED"); text != "" {
		seed, _ = strconv.ParseUint(text, 10, 64)
	}
	t.Logf("HARDTACK_TCP_SEED=%d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	all := spoiler{}
	rates := 5 // at 20 % a run takes minutes, on Linux, too
	if runs > 100 {
		rates = 6
	}
	fixed := 0.0
	if text := os.Getenv("HARDTACK_TCP_LOSS"); text != "" {
		fixed, _ = strconv.ParseFloat(text, 64)
	}
	for run := range runs {
		rate := []float64{0, 0.01, 0.03, 0.05, 0.1, 0.2}[run%rates]
		if fixed != 0 {
			rate = fixed
		}
		x := newClient(c, ourIP, uint16(20000+run%40000), echoPort)
		s := &spoiler{r: r, rate: rate}
		s.pass[0] = func(p []byte) { c.write(typeIPv4, p) }
		s.pass[1] = c.deliver
		x.sends = func(p []byte) { s.packet(0, p) }
		c.spoil = func(p []byte) { s.packet(1, p) }
		data := make([]byte, 1+r.IntN(50<<10))
		for i := range data {
			data[i] = byte(r.Uint32())
		}
		err := x.dial(hopeless)
		if err == nil {
			err = x.echo(hopeless, data)
		}
		c.spoil = nil
		x.sends = func(p []byte) { c.write(typeIPv4, p) }
		x.hangUp()
		if err != nil {
			t.Fatalf("run %d, %d bytes, rate %v: %v", run, len(data), rate, err)
		}
		all.lost, all.damaged, all.doubled, all.reversed = all.lost+s.lost, all.damaged+s.damaged, all.doubled+s.doubled, all.reversed+s.reversed
	}
	t.Logf("%d runs: %d packets lost, %d damaged, %d doubled, %d swapped", runs, all.lost, all.damaged, all.doubled, all.reversed)
	if runs >= 5 && (all.lost == 0 || all.damaged == 0 || all.doubled == 0 || all.reversed == 0) {
		t.Error("the switch was too good")
	}
}

// mostForSYNs is how much memory half-open connections may take, however many they are: a full
// queue of the listener, and what its making left behind.
const mostForSYNs = 48 << 20

// flood sends SYNs from addresses that never answer; connections opened between them are
// served.
func flood(t *testing.T, c *cable, syns int) {
	answers := 0
	c.segments = func(_ byte, to [4]byte, b []byte) {
		if to[1] == 77 && b[13] == flagSYN|flagACK {
			answers++
		}
	}
	defer func() { c.segments = nil }()
	r := rand.New(rand.NewPCG(1, 2))
	before := free(t, c)
	served := 0
	for n := range syns {
		from := [4]byte{10, 77, byte(r.Uint32()), byte(r.Uint32())}
		s := segment{flags: flagSYN, seq: r.Uint32(), window: 1000, options: []byte{2, 4, 5, 180}}
		c.write(typeIPv4, c.packet(from, 0, protoTCP, 16, s.bytes(uint16(1024+r.IntN(60000)), echoPort)))
		if n%64 == 63 {
			if err := c.fence(hopeless); err != nil {
				t.Fatal(err)
			}
		}
		if n%(max(syns/16, 1)) == syns/32 {
			x := newClient(c, ourIP, uint16(61000+served), echoPort)
			if err := x.dial(hopeless); err != nil {
				t.Fatalf("after %d SYNs: %v", n, err)
			}
			if err := x.echo(hopeless, []byte("who is served?")); err != nil {
				t.Fatalf("after %d SYNs: %v", n, err)
			}
			x.hangUp()
			served++
		}
	}
	took := before - free(t, c)
	t.Logf("%d SYNs, %d of them and of SYN-ACKs sent again were answered; %d connections were served; %d KiB are used", syns, answers, served, took>>10)
	if took > mostForSYNs {
		t.Errorf("half-open connections take %d bytes", took)
	}
	if answers == 0 || served < min(syns, 10) {
		t.Error("the flood was none")
	}
}

// mostForIdle is how much memory an idle connection may take: all that is allocated for one,
// with what the collector has not found yet.
const mostForIdle = 4500

// slow opens connections that send a byte and then nothing; another one is served, and
// they end when they are closed.
func slow(t *testing.T, c *cable, n int) {
	before := free(t, c)
	var clients []*client
	for i := range n {
		x := newClient(c, [4]byte{10, 0, 2, byte(100 + i/30000)}, uint16(10000+i%30000), echoPort)
		if err := x.dial(hopeless); err != nil {
			t.Fatalf("connection %d: %v", i, err)
		}
		if err := x.echo(hopeless, []byte("G")); err != nil {
			t.Fatalf("connection %d: %v", i, err)
		}
		clients = append(clients, x)
		if i%1000 == 999 {
			other := newClient(c, ourIP, uint16(50000+i/1000), echoPort)
			if err := other.dial(hopeless); err != nil {
				t.Fatalf("beside %d: %v", i+1, err)
			}
			if err := other.echo(hopeless, []byte(strings.Repeat("GET / ", 1000))); err != nil {
				t.Fatalf("beside %d: %v", i+1, err)
			}
			other.hangUp()
		}
	}
	full := free(t, c)
	each := float64(before-full) / float64(n)
	t.Logf("%d idle connections: %.0f bytes of the machine's memory each", n, each)
	if n >= 10000 && each > mostForIdle {
		t.Error("idle connections take more than they did")
	}
	for _, x := range clients {
		if err := x.echo(hopeless, []byte("E")); err != nil {
			t.Fatal(err)
		}
		x.hangUp()
	}
	if err := c.fence(hopeless); err != nil {
		t.Fatal(err)
	}
	t.Logf("%.0f bytes each are free again", float64(free(t, c)-full)/float64(n))
}

// free is the guest's free memory in bytes.
func free(t *testing.T, c *cable) (kb int) {
	answer, err := c.ask(hopeless, "free")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Sscan(answer, &kb); err != nil {
		t.Fatalf("%q: %v", answer, err)
	}
	return kb << 10
}
