package machine

import (
	"fmt"
	"strconv"
	"strings"

	"hardtack/tool/fault"
)

// Cluster is one of the kernels of a machine.
type Cluster struct {
	CPUs    int
	Memory  int64  // bytes
	Init    string // process 1, a path; "" in the first: the command
	Restart bool   // start it again whenever it has ended

	Disks   []Disk    // its own
	Root    bool      // the first disk is its root file system
	Net     string    // the backend of its own network card as QEMU takes it, without an id; "" for none
	Publish []Forward // ports of its own
}

// MaxClusters is how many kernels a machine can have.
const MaxClusters = 16

// clusterForm is what ParseCluster reads.
const clusterForm = "cpus=N,memory=SIZE[,init=PATH][,restart=always|never][,root=FILE[:ro]][,disk=FILE[:ro]][,net[=BACKEND]][,publish=[ADDR:]HOST:GUEST]"

// ParseCluster reads clusterForm. disk= and publish= may be given more than once; a port that is published
// makes a network. Options of a network's backend are separated by semicolons.
func ParseCluster(s string) (c Cluster, err error) {
	for _, word := range strings.Split(s, ",") {
		name, value, ok := strings.Cut(word, "=")
		switch {
		case (!ok || value == "") && word != "net":
			return c, fault.Bad("--cluster %q: want %s", s, clusterForm)
		case name == "cpus":
			if c.CPUs, err = strconv.Atoi(value); err != nil || c.CPUs < 1 {
				return c, fault.Bad("--cluster %q: cpus=%s is not a number of processors", s, value)
			}
		case name == "memory":
			if c.Memory, err = ParseMemory(value); err != nil {
				return c, err
			}
		case name == "init":
			if !strings.HasPrefix(value, "/") || strings.ContainsAny(value, ": \t\n") {
				return c, fault.Bad("--cluster %q: init=%s is not an absolute path without colons", s, value)
			}
			c.Init = value
		case name == "restart" && (value == "always" || value == "never"):
			c.Restart = value == "always"
		case name == "restart":
			return c, fault.Bad("--cluster %q: restart=%s: want always or never", s, value)
		default:
			if is, err := c.device(name, value); err != nil || is {
				if err != nil {
					return c, err
				}
				continue
			}
			return c, fault.Bad("--cluster %q: there is no %s=", s, name)
		}
	}
	if c.CPUs == 0 || c.Memory == 0 {
		return c, fault.Bad("--cluster %q: want %s", s, clusterForm)
	}
	return c, nil
}

// Split makes n clusters of equal parts of a machine. Those that cannot be equal leave the
// rest to the first.
func Split(n, cpus int, memory int64) ([]Cluster, error) {
	if n < 1 || n > MaxClusters {
		return nil, fault.Bad("--clusters %d: want 1 to %d", n, MaxClusters)
	}
	if n > cpus {
		return nil, fault.Bad("--clusters %d: %d processors are too few", n, cpus)
	}
	const mib = 1 << 20
	part := memory / int64(n) / (2 * mib) * (2 * mib)
	if n > 1 && part < MinMemory {
		return nil, fault.Bad("--clusters %d: each gets less than %d MiB", n, MinMemory/mib)
	}
	list := make([]Cluster, n)
	for i := range list {
		list[i] = Cluster{CPUs: cpus / n, Memory: part}
	}
	list[0].CPUs = cpus - (n-1)*list[0].CPUs
	list[0].Memory = memory - int64(n-1)*part
	return list, nil
}

// SetClusters gives the machine processors, memory and the parameters for these clusters.
func (c *Config) SetClusters(list []Cluster) error {
	if len(list) > MaxClusters {
		return fault.Bad("%d clusters: want at most %d", len(list), MaxClusters)
	}
	c.CPUs, c.Memory, c.Clusters, c.Kernels = 0, 0, len(list) > 1, list
	for i, k := range list {
		c.CPUs += k.CPUs
		c.Memory += k.Memory
		if i == 0 {
			if k.Init != "" || k.Restart {
				return fault.Bad("the first cluster runs the command, and the machine ends with it: no init= or restart= there")
			}
			if len(k.Disks) > 0 || k.Net != "" {
				return fault.Bad("the first cluster has the machine's devices: want --disk, --root and --publish for them")
			}
			continue
		}
		for _, f := range k.Publish {
			f.Cluster = i
			c.Publish = append(c.Publish, f)
		}
		word := fmt.Sprintf("cluster=%d:%d", k.CPUs, (k.Memory+1<<20-1)>>20)
		switch {
		case k.Restart:
			word += ":" + k.Init + ":always"
		case k.Init != "":
			word += ":" + k.Init
		}
		c.Append = strings.TrimSpace(c.Append + " " + word)
	}
	for _, word := range c.clusterWords() {
		c.Append += " " + word
	}
	return nil
}
