package machine

import (
	"strings"
	"testing"
)

func TestParseNetwork(t *testing.T) {
	for s, want := range map[string]Network{
		"user":                        userNetwork,
		"static":                      userNetwork,
		"dhcp":                        {Kind: "user", DHCP: true},
		"user,dhcp":                   {Kind: "user", DHCP: true},
		"none":                        {Kind: "none"},
		"passt":                       {Kind: "passt", DHCP: true},
		"tap=tap0":                    {Kind: "tap", Tap: "tap0", DHCP: true},
		"tap=tap0,address=fd00::2/64": {Kind: "tap", Tap: "tap0", Address: "fd00::2/64"},
		"user,address=10.0.2.9/24":    {Kind: "user", Address: "10.0.2.9/24"},
		"tap=t,address=10.1.0.2/16,gateway=10.1.0.1,dns=10.1.0.1": {Kind: "tap", Tap: "t", Address: "10.1.0.2/16", Gateway: "10.1.0.1", DNS: "10.1.0.1"},
	} {
		if got, err := ParseNetwork(s); err != nil || got != want {
			t.Errorf("%s: %+v, %v", s, got, err)
		}
	}
	for _, s := range []string{"", "wifi", "tap", "tap=", "tap=a/b", "tap=0123456789abcdef", "none,dhcp", "user=x", "passt,mtu=1",
		"tap=t,address=10.0.0.1", "tap=t,gateway=10.0.0.1", "user,dns=x", "tap=t,address=10.0.0.2/8,gateway=x"} {
		if got, err := ParseNetwork(s); err == nil {
			t.Errorf("%q: %+v", s, got)
		}
	}
}

func TestCards(t *testing.T) {
	base := Config{CPUs: 2, Memory: 128 << 20, Machine: Q35, Accel: TCG, Net: userNetwork}
	for _, x := range []struct {
		name string
		set  func(*Config)
		want string
	}{
		{"virtio", func(c *Config) {}, "-netdev user,id=net -device virtio-net-pci,netdev=net,romfile="},
		{"e1000e", func(c *Config) { c.NIC, c.MTU = NICE1000E, 9000 }, "-device e1000e,netdev=net,romfile="},
		{"e1000", func(c *Config) { c.NIC = NICE1000 }, "-device e1000,netdev=net,romfile="},
		{"jumbo", func(c *Config) { c.MTU = 9000 }, "virtio-net-pci,netdev=net,host_mtu=9000"},
		{"passt", func(c *Config) { c.Net = Network{Kind: NetPasst} }, "-netdev stream,id=net,server=off,addr.type=fd,addr.str=20"},
		{"tap", func(c *Config) { c.Net = Network{Kind: NetTap, Tap: "tap7"}; c.CPUs = 1 }, "-netdev tap,id=net,ifname=tap7,script=no,downscript=no -device"},
	} {
		c := base
		x.set(&c)
		if err := c.Check(); err != nil {
			t.Errorf("%s: %v", x.name, err)
		}
		if args := strings.Join(c.Args("", 0, 0, 0), " "); !strings.Contains(args, x.want) {
			t.Errorf("%s: %s", x.name, args)
		}
	}
	for name, set := range map[string]func(*Config){
		"no such card":        func(c *Config) { c.NIC = "ne2000" },
		"no bus for the card": func(c *Config) { c.NIC, c.Machine = NICE1000E, MicroVM },
		"small packets":       func(c *Config) { c.MTU = 67 },
		"large packets":       func(c *Config) { c.NIC, c.MTU = NICE1000, 9001 },
		"ports of a tap": func(c *Config) {
			c.Net, c.Publish = Network{Kind: NetTap, Tap: "t"}, []Forward{{Proto: "tcp", Addr: "127.0.0.1", Host: 80, Guest: 80}}
		},
		"two backends": func(c *Config) { c.Net, c.Netdev = Network{Kind: NetPasst}, "user" },
	} {
		c := base
		set(&c)
		if err := c.Check(); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}
