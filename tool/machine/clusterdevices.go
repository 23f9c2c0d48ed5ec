package machine

import (
	"fmt"
	"os"
	"strings"

	"hardtack/tool/fault"
)

// Devices of further clusters stand where the kernel finds them by their address: on microvm
// in the transports from the second on, since QEMU fills the others from the last, on q35 from
// a device number on that QEMU reaches by itself only after 15 others. The first transport is
// left out: QEMU turns the first pin of any I/O APIC into the third, as PCs have it for the timer.
const (
	firstTransport = 0xfeb00200 // of microvm's that is used, 512 bytes each
	transportBytes = 512
	transports     = 24
	firstDevice    = 0x10 // of q35's bus
	lastDevice     = 0x1e
)

// place is device i of all further clusters' devices: how the kernel calls it, and where QEMU is to
// put it.
func (c *Config) place(i int) (address, qemu string) {
	if c.Machine == Q35 {
		return fmt.Sprintf("00:%02x.0", firstDevice+i), fmt.Sprintf("bus=pcie.0,addr=%#x", firstDevice+i)
	}
	return fmt.Sprintf("%x", firstTransport+i*transportBytes), fmt.Sprintf("bus=virtio-mmio-bus.%d", i+1)
}

// clusterDevice is a device of a further cluster.
type clusterDevice struct {
	cluster int
	disk    *Disk // nil: a network card
	n       int   // of the cluster's disks
}

// clusterDevices are all of them, in the order of their places.
func (c *Config) clusterDevices() (list []clusterDevice) {
	for i := range c.Kernels {
		k := &c.Kernels[i]
		for n := range k.Disks {
			list = append(list, clusterDevice{i, &k.Disks[n], n})
		}
		if k.Net != "" {
			list = append(list, clusterDevice{cluster: i})
		}
	}
	return list
}

// clusterWords are the kernel parameters that give the devices to their clusters.
func (c *Config) clusterWords() (words []string) {
	for i, d := range c.clusterDevices() {
		address, _ := c.place(i)
		words = append(words, fmt.Sprintf("cluster%d.device=%s", d.cluster, address))
	}
	for i := range c.Kernels {
		if k := &c.Kernels[i]; k.Root {
			mode := "rw"
			if k.Disks[0].ReadOnly {
				mode = "ro"
			}
			for _, w := range []string{"root=/dev/vda", "rootfstype=ext4", mode} {
				words = append(words, fmt.Sprintf("cluster%d.%s", i, w))
			}
		}
	}
	return words
}

// clusterArgs are QEMU's arguments for the devices of further clusters.
func (c *Config) clusterArgs(bus string) (args []string) {
	for i, d := range c.clusterDevices() {
		_, at := c.place(i)
		k := &c.Kernels[d.cluster]
		if d.disk != nil {
			id := fmt.Sprintf("cluster%ddisk%d", d.cluster, d.n)
			args = append(args, "-drive", d.disk.drive(id),
				"-device", fmt.Sprintf("virtio-blk-%s,drive=%s,serial=disk%d,num-queues=%d,%s", bus, id, d.n, k.CPUs, at))
			continue
		}
		id := fmt.Sprintf("cluster%dnet", d.cluster)
		device := fmt.Sprintf("virtio-net-%s,netdev=%s,%s", bus, id, at)
		if c.Machine == Q35 {
			device += ",romfile="
		}
		args = append(args, "-netdev", k.Net+",id="+id+c.forwards(d.cluster), "-device", device)
	}
	return args
}

// forwards are the published ports of a cluster as QEMU's user network takes them.
func (c *Config) forwards(cluster int) (s string) {
	for _, f := range c.Publish {
		if f.Cluster == cluster {
			s += fmt.Sprintf(",hostfwd=%s:%s:%d-:%d", f.Proto, f.Addr, f.Host, f.Guest)
		}
	}
	return s
}

// checkClusters refuses devices that clusters cannot have, and ports of those without a network.
func (c *Config) checkClusters() error {
	most := transports - 1 - 8 // what the first cluster's devices need
	if c.Machine == Q35 {
		most = lastDevice - firstDevice + 1
	}
	all := c.clusterDevices()
	if len(all) > most {
		return fault.Bad("the clusters have %d devices: the machine has room for %d", len(all), most)
	}
	files := c.Disks
	for _, d := range all {
		if d.disk == nil {
			continue
		}
		if err := d.disk.check("--cluster disk=", c.Machine); err != nil {
			return err
		}
		for _, other := range files {
			a, err1 := os.Stat(d.disk.File)
			b, err2 := os.Stat(other.File)
			if err1 == nil && err2 == nil && os.SameFile(a, b) && !(d.disk.ReadOnly && other.ReadOnly) {
				return fault.Bad("--cluster disk=%s: given twice, and not read-only", d.disk.File)
			}
		}
		files = append(files[:len(files):len(files)], *d.disk)
	}
	for _, f := range c.Publish {
		switch {
		case f.Cluster == 0:
		case f.Cluster >= len(c.Kernels):
			return fault.Bad("port %d is published from cluster %d, which is not there", f.Host, f.Cluster)
		case c.Kernels[f.Cluster].Net != "user":
			return fault.Bad("port %d is published from cluster %d, which has no user network: want --cluster …,net", f.Host, f.Cluster)
		}
	}
	return nil
}

// device reads one word of --cluster that is for a device; it reports whether it is one.
func (c *Cluster) device(name, value string) (bool, error) {
	switch name {
	case "disk", "root":
		file, ro := strings.CutSuffix(value, ":ro")
		if file == "" {
			return true, fault.Bad("--cluster: want %s=FILE[:ro]", name)
		}
		d := Disk{File: file, Driver: DiskVirtio, ReadOnly: ro}
		if name == "disk" {
			c.Disks = append(c.Disks, d)
			return true, nil
		}
		if c.Root {
			return true, fault.Bad("--cluster: root= is given twice")
		}
		c.Root, c.Disks = true, append([]Disk{d}, c.Disks...)
	case "net":
		if c.Net = strings.ReplaceAll(value, ";", ","); c.Net == "" {
			c.Net = "user"
		}
	case "publish":
		f, err := ParseForward(value)
		if err != nil {
			return true, err
		}
		if f.Cluster != 0 {
			return true, fault.Bad("--cluster publish=%s: the port is this cluster's: no @", value)
		}
		c.Publish = append(c.Publish, f)
		if c.Net == "" {
			c.Net = "user"
		}
	default:
		return false, nil
	}
	return true, nil
}
