package machine

import (
	"reflect"
	"strings"
	"testing"
)

func TestParseCluster(t *testing.T) {
	for text, want := range map[string]Cluster{
		"cpus=2,memory=256M":              {CPUs: 2, Memory: 256 << 20},
		"memory=1G,cpus=1,init=/bin/work": {CPUs: 1, Memory: 1 << 30, Init: "/bin/work"},

		"cpus=1,memory=64M,restart=always":        {CPUs: 1, Memory: 64 << 20, Restart: true},
		"cpus=1,memory=64M,init=/w,restart=never": {CPUs: 1, Memory: 64 << 20, Init: "/w"},

		"cpus=1,memory=64M,net":                                 {CPUs: 1, Memory: 64 << 20, Net: "user"},
		"cpus=1,memory=64M,net=tap;ifname=t0;script=no":         {CPUs: 1, Memory: 64 << 20, Net: "tap,ifname=t0,script=no"},
		"cpus=1,memory=64M,disk=a,disk=b:ro,root=c":             {CPUs: 1, Memory: 64 << 20, Root: true, Disks: []Disk{{File: "c", Driver: "virtio"}, {File: "a", Driver: "virtio"}, {File: "b", Driver: "virtio", ReadOnly: true}}},
		"cpus=1,memory=64M,publish=8080:80,publish=53:5353/udp": {CPUs: 1, Memory: 64 << 20, Net: "user", Publish: []Forward{{Proto: "tcp", Addr: "127.0.0.1", Host: 8080, Guest: 80}, {Proto: "udp", Addr: "127.0.0.1", Host: 53, Guest: 5353}}},
	} {
		if got, err := ParseCluster(text); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v; want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "cpus=2", "memory=256M", "cpus=0,memory=256M", "cpus=x,memory=256M", "cpus=1,memory=1M",
		"cpus=1,memory=64M,init=work", "cpus=1,memory=64M,init=/a b", "cpus=1,memory=64M,init=/a:b", "cpus=1,memory=64M,restart=yes", "cpus=1,memory=64M,root=:ro", "cpus=1,memory=64M,root=x,root=y", "cpus=1,memory=64M,publish=80", "cpus=1,memory=64M,publish=80:80@2", "cpus=1,memory=64M,disk", "cpus=1,,memory=64M"} {
		if c, err := ParseCluster(text); err == nil {
			t.Errorf("%q is taken for %+v", text, c)
		}
	}
}

// The parts of a machine add up to it.
func TestSplit(t *testing.T) {
	for _, c := range []struct {
		n, cpus int
		memory  int64
	}{{1, 1, 32 << 20}, {2, 4, 512 << 20}, {3, 4, 500 << 20}, {16, 16, 1 << 30}} {
		list, err := Split(c.n, c.cpus, c.memory)
		if err != nil || len(list) != c.n {
			t.Fatalf("%+v: %v, %v", c, list, err)
		}
		var m Config
		if err := m.SetClusters(list); err != nil {
			t.Fatal(err)
		}
		if m.CPUs != c.cpus || m.Memory != c.memory {
			t.Errorf("%+v: %d CPUs, %d bytes in all", c, m.CPUs, m.Memory)
		}
		if got := strings.Count(m.Append, "cluster="); got != c.n-1 {
			t.Errorf("%+v: %q", c, m.Append)
		}
	}
	for _, c := range [][3]int64{{0, 1, 1 << 30}, {2, 1, 1 << 30}, {17, 64, 1 << 40}, {4, 4, 64 << 20}} {
		if list, err := Split(int(c[0]), int(c[1]), c[2]); err == nil {
			t.Errorf("%v is split into %v", c, list)
		}
	}
}

func TestSetClusters(t *testing.T) {
	c := Config{Append: "panic=stop"}
	list := []Cluster{{CPUs: 1, Memory: 128 << 20}, {CPUs: 2, Memory: 64 << 20, Init: "/w"}, {CPUs: 1, Memory: 32 << 20, Restart: true}}
	if err := c.SetClusters(list); err != nil {
		t.Fatal(err)
	}
	if want := (Config{Append: "panic=stop cluster=2:64:/w cluster=1:32::always", CPUs: 4, Memory: 224 << 20, Clusters: true, Kernels: list}); !reflect.DeepEqual(c, want) {
		t.Errorf("%+v; want %+v", c, want)
	}
	if err := c.SetClusters([]Cluster{{CPUs: 1, Memory: 1 << 30, Init: "/w"}}); err == nil {
		t.Error("the first cluster has an init")
	}
}

// Each device of a further cluster has a place that kernel and emulator agree on, and a
// published port its cluster's network.
func TestClusterDevices(t *testing.T) {
	list := []Cluster{{CPUs: 1, Memory: 128 << 20}, {CPUs: 2, Memory: 64 << 20, Net: "user", Root: true, Disks: []Disk{{File: "/r,x", Driver: DiskVirtio, ReadOnly: true}}},
		{CPUs: 1, Memory: 64 << 20, Net: "user", Publish: []Forward{{Proto: "tcp", Addr: "127.0.0.1", Host: 8081, Guest: 81}}}}
	for machine, want := range map[string][]string{
		MicroVM: {"cluster1.device=feb00200 cluster1.device=feb00400 cluster2.device=feb00600 cluster1.root=/dev/vda cluster1.rootfstype=ext4 cluster1.ro",
			"file=/r,,x,readonly=on", "virtio-blk-device,drive=cluster1disk0,serial=disk0,num-queues=2,bus=virtio-mmio-bus.1",
			"user,id=cluster1net,hostfwd=tcp:127.0.0.1:8080-:80 ", "virtio-net-device,netdev=cluster2net,bus=virtio-mmio-bus.3", "user,id=cluster2net,hostfwd=tcp:127.0.0.1:8081-:81 ", "user,id=net "},
		Q35: {"cluster1.device=00:10.0", "cluster2.device=00:12.0", "virtio-blk-pci,drive=cluster1disk0,serial=disk0,num-queues=2,bus=pcie.0,addr=0x10"},
	} {
		c := Config{Machine: machine, Publish: []Forward{{Proto: "tcp", Addr: "127.0.0.1", Host: 8080, Guest: 80, Cluster: 1}}}
		if err := c.SetClusters(list); err != nil {
			t.Fatal(err)
		}
		args := strings.Join(c.Args("initrd", 3, 4, 5), " ") + " "
		for _, text := range want {
			if !strings.Contains(args, text) {
				t.Errorf("%s: %q is not in %s", machine, text, args)
			}
		}
	}
	c := Config{Machine: MicroVM, Accel: TCG, Publish: []Forward{{Proto: "tcp", Addr: "127.0.0.1", Host: 1, Guest: 1, Cluster: 1}}}
	if err := c.SetClusters([]Cluster{{CPUs: 1, Memory: 64 << 20}, {CPUs: 1, Memory: 64 << 20}}); err != nil {
		t.Fatal(err)
	}
	if err := c.Check(); err == nil || !strings.Contains(err.Error(), "no user network") {
		t.Errorf("a port of a cluster without a network: %v", err)
	}
	c.Publish[0].Cluster = 2
	if err := c.Check(); err == nil || !strings.Contains(err.Error(), "not there") {
		t.Errorf("a port of no cluster: %v", err)
	}
	if err := new(Config).SetClusters([]Cluster{{CPUs: 1, Memory: 64 << 20, Net: "user"}}); err == nil {
		t.Error("the first cluster has devices of its own")
	}
}
