package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"runtime/metrics"
	"strings"
	"time"

	"hardtack/abi/boot"
	"hardtack/arch/amd64"
	"hardtack/driver/acpi"
	proto "hardtack/idl/monitor"
	"hardtack/kernel/base/clocks"
	"hardtack/kernel/base/ktime"
	"hardtack/kernel/base/mem"
	"hardtack/kernel/base/random"
	"hardtack/kernel/process/proc"
	"hardtack/kernel/pseudofs/procfs"
	"hardtack/monitor"
	"hardtack/nucleus"
)

// others are the clusters that this one, the first, starts.
type others struct {
	all     []*otherCluster
	monitor *monitor.Monitor // nil where there is one cluster only
}

// otherCluster is one of them.
type otherCluster struct {
	index int
	plan  nucleus.ClusterPlan
	apic  []uint32
	init  string // its process 1, or "" for none
	view  *nucleus.ClusterView
	links [2]*monitor.Link
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
	if len(k.others.all) > 0 {
		k.startMonitor()
	}
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
	if o.view, err = nucleus.StartCluster(&s); err != nil {
		return err
	}
	areas := o.view.Areas()
	ring := func() { nucleus.RingCluster(o.index) }
	name := fmt.Sprintf("cluster %d", o.index)
	o.links = [2]*monitor.Link{monitor.NewLink(name, areas[0], 0, ring), monitor.NewLink(name, areas[1], 0, ring)}
	go k.join(o.index, o.links[0], o.links[1])
	return nil
}

// joinTime is how long a cluster may take from its start until its monitor answers.
const joinTime = 30 * time.Second

// join connects to another cluster's monitor.
func (k *kernel) join(index int, out, in *monitor.Link) {
	ctx, cancel := context.WithTimeout(context.Background(), joinTime)
	defer cancel()
	if err := k.others.monitor.Join(ctx, index, out, in); err != nil {
		warn("the monitor of cluster %d: %v", index, err)
	}
}

// startMonitor makes this kernel's monitor, which other clusters ring for.
func (k *kernel) startMonitor() {
	m, err := monitor.New(host{k})
	if err == nil {
		err = nucleus.OnDoorbell(m.Rung)
	}
	if err != nil {
		k.fail("the monitor: %v", err)
	}
	k.others.monitor = m
	procfs.RegisterAdmin("hardtack/monitors", k.monitorsText, nil)
}

// host is what the monitor needs of the kernel.
type host struct{ k *kernel }

func (h host) Health() (out proto.HealthReply) {
	m := nucleus.MemoryInfo()
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/gc/cycles/total:gc-cycles"}}
	metrics.Read(sample)
	out = proto.HealthReply{Processors: uint32(nucleus.NumCPU()), Memory: uint64(m.Total) * mem.PageSize, Unused: uint64(m.Free) * mem.PageSize,
		Heap: sample[0].Value.Uint64(), Collections: uint32(sample[1].Value.Uint64())}
	proc.Each(func(*proc.Process) bool {
		out.Processes++
		return true
	})
	return out
}

func (h host) Stop(status uint8) error {
	if nucleus.ClusterIndex() == 0 {
		return proto.ErrBusy // the machine is not another cluster's to end
	}
	go func() {
		time.Sleep(10 * time.Millisecond) // the answer is on its way
		h.k.shutdown(status)
	}()
	return nil
}

// monitorsText is what the other monitors answer, and how far away they are: the least
// time of a call and its answer when both sides wait awake, and when the other sleeps.
func (k *kernel) monitorsText() []byte {
	b := new(bytes.Buffer)
	for i := range boot.MaxClusters {
		c, err := k.others.monitor.Peer(i)
		if err != nil {
			continue
		}
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		h, err := c.Health(ctx, proto.HealthCall{})
		awake, asleep := int64(1<<62), int64(1<<62)
		ping := func(n int, pause time.Duration, least *int64) {
			for range n {
				if err == nil {
					time.Sleep(pause)
					start := clocks.Monotonic()
					_, err = c.Ping(ctx, proto.PingCall{Number: uint64(start)})
					*least = min(*least, clocks.Monotonic()-start)
				}
			}
		}
		ping(100, 0, &awake)
		ping(10, 2*time.Millisecond, &asleep)
		cancel()
		if err != nil {
			fmt.Fprintf(b, "%d %v\n", i, err)
			continue
		}
		fmt.Fprintf(b, "%d cpus %d memory %d free %d heap %d collections %d processes %d awake %d ns asleep %d ns\n",
			i, h.Processors, h.Memory, h.Unused, h.Heap, h.Collections, h.Processes, awake, asleep)
	}
	return b.Bytes()
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
		for _, l := range o.links {
			l.Die()
		}
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

// meetFirst joins this cluster's monitor with the first cluster's.
func (k *kernel) meetFirst() {
	k.startMonitor()
	areas := nucleus.ClusterAreas()
	ring := func() { nucleus.RingCluster(0) }
	in, out := monitor.NewLink("cluster 0", areas[0], 1, ring), monitor.NewLink("cluster 0", areas[1], 1, ring)
	go k.join(0, out, in)
}
