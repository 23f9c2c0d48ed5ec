package machine

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hardtack/tool/fault"
)

func TestParseForward(t *testing.T) {
	for s, want := range map[string]Forward{
		"8080:80":            {"tcp", "127.0.0.1", 8080, 80, 0},
		"8080:80@1":          {"tcp", "127.0.0.1", 8080, 80, 1},
		"53:53/udp@15":       {"udp", "127.0.0.1", 53, 53, 15},
		"0.0.0.0:8080:80":    {"tcp", "0.0.0.0", 8080, 80, 0},
		"10.0.0.1:53:53/udp": {"udp", "10.0.0.1", 53, 53, 0},
		"1:65535/tcp":        {"tcp", "127.0.0.1", 1, 65535, 0},
	} {
		if got, err := ParseForward(s); err != nil || got != want {
			t.Errorf("%s: %+v, %v", s, got, err)
		}
	}
	for _, s := range []string{"", "80", "80:", ":80", "0:80", "80:0", "65536:1", "a:b", "1:2:3:4", "host:1:2", "::1:80:80", "1:2/sctp",
		"1,hostfwd=x:2", "127.0.0.1,x:1:2", " 1:2", "+1:2", "1:2@", "1:2@x", "1:2@-1", "@1"} {
		if _, err := ParseForward(s); fault.Status(err) != 2 {
			t.Errorf("%q: %v", s, err)
		}
	}
}

func TestParseMemory(t *testing.T) {
	for s, want := range map[string]int64{"512M": 512 << 20, "2G": 2 << 30, "65536K": 64 << 20, "128MiB": 128 << 20, "128mb": 128 << 20, "67108864": 64 << 20, "1T": 1 << 40} {
		if got, err := ParseMemory(s); err != nil || got != want {
			t.Errorf("%s: %d, %v", s, got, err)
		}
	}
	for _, s := range []string{"", "M", "512", "-1G", "1.5G", "16M", "99999999999G", "9223372036854775807K", "1GG", "1GM", "1X"} {
		if got, err := ParseMemory(s); fault.Status(err) != 2 {
			t.Errorf("%q: %d, %v", s, got, err)
		}
	}
}

func TestCheck(t *testing.T) {
	good := Config{CPUs: 2, Memory: 1 << 29, Machine: MicroVM, Accel: Auto}
	if err := good.Check(); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*Config){
		"no processor":        func(c *Config) { c.CPUs = 0 },
		"too many processors": func(c *Config) { c.CPUs = MaxCPUs + 1 },
		"machine":             func(c *Config) { c.Machine = "pc" },
		"accelerator":         func(c *Config) { c.Accel = "hvf" },
		"counted kvm":         func(c *Config) { c.Accel, c.ICount = KVM, true },
		"port twice":          func(c *Config) { f := Forward{"tcp", "127.0.0.1", 80, 80, 0}; c.Publish = []Forward{f, f} },
		"packets without net": func(c *Config) { c.NoNet, c.Pcap = true, "file" },
		"port without net":    func(c *Config) { c.NoNet, c.Publish = true, []Forward{{"tcp", "127.0.0.1", 80, 80, 0}} },
	} {
		c := good
		change(&c)
		if err := c.Check(); fault.Status(err) != 2 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestCheckKernel(t *testing.T) {
	dir := t.TempDir()
	write := func(b []byte) string {
		name := filepath.Join(dir, "k")
		if err := os.WriteFile(name, b, 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	if err := CheckKernel(write(probeImage())); err != nil {
		t.Error(err)
	}
	arm := TinyKernel(sleep)
	arm[18] = 183
	noNote := TinyKernel(sleep)
	noNote[0x200+8] = 17
	huge := TinyKernel(sleep)
	copy(huge[64+40:], "\xff\xff\xff\xff\xff\xff\xff\xff")
	for want, name := range map[string]string{
		"no such file": filepath.Join(dir, "none"),
		"directory":    dir,
		"not an ELF":   "/etc/passwd",
		"not for x86":  write(arm),
	} {
		if err := CheckKernel(name); fault.Status(err) != 2 || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	for want, b := range map[string][]byte{"no PVH note": noNote, "overlap or are too large": huge, "": TinyKernel(sleep)[:100]} {
		if err := CheckKernel(write(b)); fault.Status(err) != 2 || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

func TestQuote(t *testing.T) {
	if got := Quote([]string{"a", "b c", "d'e", "", "x=1,y"}); got != `a 'b c' 'd'\''e' '' x=1,y` {
		t.Error(got)
	}
}

func TestPcap(t *testing.T) {
	c := Config{CPUs: 1, Memory: 1 << 29, Machine: MicroVM, Accel: TCG, Pcap: "a,b"}
	if args := strings.Join(c.Args("", 0, 0, 0), " "); !strings.Contains(args, "-object filter-dump,id=pcap,netdev=net,file=a,,b") {
		t.Error(args)
	}
}
