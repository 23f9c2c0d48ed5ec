package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"time"

	"hardtack/abi/boot"
	"hardtack/arch/amd64"
	"hardtack/driver/acpi"
	"hardtack/kernel/base/clocks"
	"hardtack/kernel/base/ktime"
	"hardtack/kernel/base/random"
	"hardtack/kernel/pseudofs/procfs"
	"hardtack/nucleus"
)

// others are the clusters that this one, the first, starts.
type others struct {
	all []*otherCluster
}

// otherCluster is one of them.
type otherCluster struct {
	index int
	plan  nucleus.ClusterPlan
	apic  []uint32
	init  string // its process 1, or "" for none
	view  *nucleus.ClusterView
	line  []byte // the last line of its log, as far as it has come
	end   string // how it ended
}

// planClusters shares the processors out: the first ones are this cluster's, and the
// others follow in order. It returns this cluster's.
func (k *kernel) planClusters(all []acpi.CPU) []acpi.CPU {
	var usable []acpi.CPU
	for _, c := range all {
		if c.Enabled {
			usable = append(usable, c)
		}
	}
	plans := nucleus.Clusters()
	left := len(usable)
	for _, p := range plans {
		left -= p.CPUs
	}
	if left < 1 {
		k.fail("%d processors are too few for the clusters", len(usable))
	}
	programs := k.clusterPrograms()
	next := left
	for i, p := range plans {
		o := &otherCluster{index: i + 1, plan: p, init: programs[i]}
		for _, c := range usable[next : next+p.CPUs] {
			o.apic = append(o.apic, c.APIC)
		}
		next += p.CPUs
		k.others.all = append(k.others.all, o)
	}
	return usable[:left]
}

// clusterPrograms reads what comes behind the second colon of the parameters
// cluster=CPUS:MIB:PROGRAM.
func (k *kernel) clusterPrograms() (list []string) {
	for _, w := range strings.Fields(k.cmdline) {
		if v, ok := strings.CutPrefix(w, "cluster="); ok {
			part := strings.SplitN(v, ":", 3)
			list = append(list, append(part, "", "")[2])
		}
	}
	return list
}

// startClusters starts the other clusters, each with a copy of the boot archive.
func (k *kernel) startClusters() {
	for _, o := range k.others.all {
		if err := k.startCluster(o); err != nil {
			warn("cluster %d: %v", o.index, err)
			continue
		}
		go o.watch()
	}
	if len(k.others.all) > 0 {
		procfs.Register("hardtack/clusters", k.others.text)
	}
}

func (k *kernel) startCluster(o *otherCluster) (err error) {
	s := nucleus.ClusterStart{Index: o.index, APIC: o.apic, Realtime: uint64(clocks.RealtimeOffset())}
	if pa, size := nucleus.Initrd(); size > 0 {
		s.Archive = nucleus.RAM(pa, int(size))
	}
	for _, w := range strings.Fields(k.cmdline) {
		name, _, _ := strings.Cut(w, "=")
		switch name {
		case "cluster", "init", "root", "rootflags", "rootfstype", "virtio_mmio.device":
		default:
			s.Cmdline += w + " "
		}
	}
	if o.init != "" {
		s.Cmdline += "init=" + o.init
	}
	if _, err := (random.Reader{}).Read(s.Seed[:]); err != nil {
		return err
	}
	o.view, err = nucleus.StartCluster(&s)
	return err
}

// watchPeriod is how often a cluster's log and state are looked at.
const watchPeriod = 20 * time.Millisecond

// watch shows what a cluster logs until it ends.
func (o *otherCluster) watch() {
	for {
		time.Sleep(watchPeriod)
		state, status := o.view.State()
		o.show()
		switch state {
		case boot.ClusterExited:
			o.end = fmt.Sprintf("exited %d", status)
		case boot.ClusterPanicked:
			o.end = "panicked"
		default:
			continue
		}
		o.view.Stop()
		o.show()
		warn("cluster %d %s", o.index, o.end)
		return
	}
}

// show prints the log's new lines.
func (o *otherCluster) show() {
	text, lost := o.view.ReadLog()
	if lost > 0 {
		o.line = fmt.Appendf(o.line, "[%d bytes lost]\n", lost)
	}
	o.line = append(o.line, text...)
	for {
		i := bytes.IndexByte(o.line, '\n')
		if i < 0 {
			return
		}
		fmt.Fprintf(os.Stdout, "[%d] %s\n", o.index, o.line[:i])
		o.line = o.line[i+1:]
	}
}

// text is /proc/hardtack/clusters.
func (s *others) text() []byte {
	b := new(bytes.Buffer)
	for _, o := range s.all {
		how := o.end
		if how == "" && o.view != nil {
			how = "starting"
			if state, _ := o.view.State(); state == boot.ClusterRunning {
				how = "running"
			}
		}
		fmt.Fprintf(b, "%d %s cpus %d memory %d MiB\n", o.index, how, o.plan.CPUs, (o.plan.End-o.plan.Base)>>20)
	}
	return b.Bytes()
}

// joinCluster is what another than the first cluster has instead of firmware.
func (k *kernel) joinCluster() {
	apic, _, seed := nucleus.ClusterFacts()
	random.Stir(seed, 8*len(seed))
	for _, id := range apic {
		if id == nucleus.BootAPICID() {
			continue
		}
		if err := nucleus.StartCPU(id); err != nil {
			warn("CPU with APIC ID %d: %v", id, err)
		}
	}
}

// setClusterClock takes the first cluster's wall clock, as it was at this one's start.
func (k *kernel) setClusterClock() {
	_, realtime, _ := nucleus.ClusterFacts()
	ktime.SetRealtime(int64(realtime) + clocks.Monotonic())
	amd64.RealtimeBase = uint64(clocks.RealtimeOffset())
}
