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
	} {
		if got, err := ParseCluster(text); err != nil || got != want {
			t.Errorf("%s: %+v, %v; want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "cpus=2", "memory=256M", "cpus=0,memory=256M", "cpus=x,memory=256M", "cpus=1,memory=1M",
		"cpus=1,memory=64M,init=work", "cpus=1,memory=64M,init=/a b", "cpus=1,memory=64M,init=/a:b", "cpus=1,memory=64M,restart=yes", "cpus=1,memory=64M,root=x", "cpus=1,,memory=64M"} {
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
	if err := c.SetClusters([]Cluster{{CPUs: 1, Memory: 128 << 20}, {CPUs: 2, Memory: 64 << 20, Init: "/w"}, {CPUs: 1, Memory: 32 << 20, Restart: true}}); err != nil {
		t.Fatal(err)
	}
	if want := (Config{Append: "panic=stop cluster=2:64:/w cluster=1:32::always", CPUs: 4, Memory: 224 << 20, Clusters: true}); !reflect.DeepEqual(c, want) {
		t.Errorf("%+v; want %+v", c, want)
	}
	if err := c.SetClusters([]Cluster{{CPUs: 1, Memory: 1 << 30, Init: "/w"}}); err == nil {
		t.Error("the first cluster has an init")
	}
}
