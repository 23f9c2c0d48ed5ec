package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"hardtack/abi/boot"
	"hardtack/abi/linux"
	"hardtack/driver/acpi"
	"hardtack/driver/virtio"
	proto "hardtack/idl/monitor"
	"hardtack/kernel/base/clocks"
	"hardtack/kernel/base/random"
	"hardtack/kernel/net/clusternet"
	"hardtack/kernel/pseudofs/procfs"
	"hardtack/monitor"
	"hardtack/monitor/broker"
	"hardtack/nucleus"
)

// others are the clusters that this one, the first, starts.
type others struct {
	all     []*otherCluster
	start   sync.Mutex     // one starts at a time
	broker  *broker.Broker // who has what
	moves   moves
	monitor *monitor.Monitor // nil where there is one cluster only
	net     *clusternet.Net  // nil where monitor is
	memory  uint64           // of this cluster by the plan, in bytes
}

// otherCluster is one of them.
type otherCluster struct {
	index int
	plan  nucleus.ClusterPlan
	init  string      // its process 1, or "" for none
	again bool        // it starts again whenever it has ended
	ask   chan string // restart, stop or kill

	// Its devices; immutable once it starts (clusterdevices.go).
	devices   []virtio.Transport
	registers []boot.Range
	lines     []uint32 // of I/O APICs
	options   []string // kernel parameters of its own

	// Of the goroutine that watches it.
	view  *nucleus.ClusterView
	links [2]*monitor.Link
	wire  *clusternet.Wire
	line  []byte // the last line of its log, as far as it has come
	beat  uint64
	heard int64 // when the beat changed

	state atomic.Pointer[string]
	lives atomic.Int32 // how often it was started
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
	k.processors = min(len(usable), 64)
	more := k.clusterParameters()
	next := left
	book := []broker.Plan{{APIC: apicIDs(usable[:left])}}
	for i, p := range plans {
		o := &otherCluster{index: i + 1, plan: p, init: more[i][2], again: more[i][3] == "always", ask: make(chan string, 1)}
		o.say("starting")
		book = append(book, broker.Plan{APIC: apicIDs(usable[next : next+p.CPUs]), Start: uint32(p.Base / broker.PieceSize), End: uint32(p.End / broker.PieceSize), Least: leastMemory(p)})
		next += p.CPUs
		k.others.all = append(k.others.all, o)
	}
	if len(plans) > 0 {
		k.others.memory = ownMemory(plans)
		k.others.broker = broker.New(book, &k.estate, func(apic uint32) { nucleus.SeizeCPU(apic) })
	}
	return usable[:left]
}

// leastMemory is how many pieces a cluster does not lend: it could not start without them.
func leastMemory(p nucleus.ClusterPlan) uint32 {
	least := nucleus.ClusterNeeds() + room
	return uint32(min(least+broker.PieceSize-1, p.End-p.Base) / broker.PieceSize)
}

// room is what a cluster should have for programs when it has lent all that it can.
const room = 32 << 20

// ownMemory is how many bytes of memory the first cluster has by the plan.
func ownMemory(plans []nucleus.ClusterPlan) (n uint64) {
	for _, r := range nucleus.MemoryMap() {
		if r.Type == 1 {
			n += r.End - r.Start
		}
	}
	for _, p := range plans {
		n -= p.End - p.Base
	}
	return n
}

func apicIDs(cpus []acpi.CPU) (list []uint32) {
	for _, c := range cpus {
		list = append(list, c.APIC)
	}
	return list
}

// clusterParameters splits the parameters cluster=CPUS:MIB:PROGRAM:always, of which the
// last two parts may be missing.
func (k *kernel) clusterParameters() (list [][]string) {
	for _, w := range strings.Fields(k.cmdline) {
		if v, ok := strings.CutPrefix(w, "cluster="); ok {
			list = append(list, append(strings.SplitN(v, ":", 4), "", "", "")[:4])
		}
	}
	return list
}

// startClusters starts the other clusters.
func (k *kernel) startClusters() {
	if len(k.others.all) == 0 {
		return
	}
	k.startMonitor()
	for _, o := range k.others.all {
		go k.lead(o)
	}
	procfs.RegisterTrigger("hardtack/clusters", k.others.text, k.others.write)
	procfs.RegisterAdmin("hardtack/moves", k.others.moves.text, nil)
}

// How long a cluster that starts again by itself rests before: longer each time, until it
// has run for a while.
const (
	firstPause = 100 * time.Millisecond
	longPause  = 10 * time.Second
)

// lead starts a cluster and watches it, and starts it again when it is asked to.
func (k *kernel) lead(o *otherCluster) {
	for pause := firstPause; ; {
		how, began := "", clocks.Monotonic()
		if err := k.startCluster(o); err != nil {
			how = "does not start"
			warn("cluster %d: %v", o.index, err)
			k.others.broker.Ended(o.index)
		} else {
			how = k.watch(o)
			warn("cluster %d %s", o.index, how)
		}
		if how == "restarts" {
			o.say("starting") // it runs no more, and another restart would be this one
			continue
		}
		o.say(how)
		if how == "cannot be stopped" {
			return // its memory may still be written to
		}
		if clocks.Monotonic()-began > int64(longPause) {
			pause = firstPause
		}
		if o.again && how != "was killed" {
			time.Sleep(pause)
			pause = min(2*pause, longPause)
			continue
		}
		for what := range o.ask {
			if what == "restart" {
				break
			}
		}
	}
}

func (k *kernel) startCluster(o *otherCluster) (err error) {
	apic, pieces := k.others.broker.Start(o.index)
	s := nucleus.ClusterStart{Index: o.index, APIC: apic, Processors: k.processors, Memory: ranges(pieces), Realtime: uint64(clocks.RealtimeOffset())}
	if pa, size := nucleus.Initrd(); size > 0 && !o.hasRoot() {
		s.Archive = nucleus.Range{Start: pa, End: pa + size}
	}
	for _, w := range strings.Fields(k.cmdline) {
		name, _, _ := strings.Cut(w, "=")
		switch name {
		case "cluster", "init", "root", "rootflags", "rootfstype", "ro", "rw", "virtio_mmio.device":
		default:
			if !isClusterOption(w) {
				s.Cmdline += w + " "
			}
		}
	}
	for _, w := range o.options {
		s.Cmdline += w + " "
	}
	s.Devices = o.registers
	if o.init != "" {
		s.Cmdline += "init=" + o.init
	}
	if _, err := (random.Reader{}).Read(s.Seed[:]); err != nil {
		return err
	}
	o.resetDevices()
	o.giveLines(apic[0])
	o.lives.Add(1)
	o.beat = 0
	k.others.start.Lock()
	o.view, err = nucleus.StartCluster(&s)
	k.others.start.Unlock()
	if err != nil {
		return err
	}
	areas := o.view.Areas()
	ring := func() { nucleus.RingCluster(o.index) }
	name := fmt.Sprintf("cluster %d", o.index)
	o.links = [2]*monitor.Link{monitor.NewLink(name, areas[0], 0, ring), monitor.NewLink(name, areas[1], 0, ring)}
	go k.join(o.index, o.links[0], o.links[1])
	o.wire = clusternet.NewWire(areas[2], 0, ring)
	k.others.net.Add(o.index, o.wire)
	return nil
}

// hasRoot tells whether the root file system is on a disk of its own, so that it needs no archive.
func (o *otherCluster) hasRoot() bool {
	return slices.ContainsFunc(o.options, func(w string) bool { return strings.HasPrefix(w, "root=") })
}

// Times of the watch: how often a cluster's log and state are looked at, how long it may
// be silent, how long its start may take, and how often a cluster gives a sign of life.
const (
	watchPeriod = 20 * time.Millisecond
	silence     = 10 * time.Second
	startTime   = 60 * time.Second
	beatPeriod  = 100 * time.Millisecond
)

// watch shows what a cluster logs until it ends, and returns how it did. Its processors
// do not run any more then.
func (k *kernel) watch(o *otherCluster) string {
	how := ""
	for o.heard = clocks.Monotonic(); how == ""; {
		select {
		case what := <-o.ask:
			how = k.do(o, what)
		case <-time.After(watchPeriod):
			how = o.look()
		}
		o.show()
	}
	stopped := o.view.Stop(k.others.broker.Ending(o.index))
	o.resetDevices()
	k.others.net.End(o.index, o.wire)
	k.others.monitor.Leave(o.index, o.links[:]...)
	if stopped {
		k.others.monitor.Revoke(o.index)
		k.others.broker.Ended(o.index)
	} else {
		how = "cannot be stopped"
	}
	o.show()
	return how
}

// do does what somebody asked for; it returns how the cluster ended, if it has.
func (k *kernel) do(o *otherCluster, what string) string {
	switch what {
	case "kill":
		return "was killed"
	case "restart":
		if o.beat == 0 { // it is about to start
			return ""
		}
		return "restarts"
	case "stop":
		c, err := k.others.monitor.Peer(o.index)
		if err == nil {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			_, err = c.Stop(ctx, proto.StopCall{})
			cancel()
		}
		if err != nil {
			warn("stopping cluster %d: %v", o.index, err)
		}
	}
	return ""
}

// look looks at a cluster's state; it returns how it ended, if it has.
func (o *otherCluster) look() string {
	state, status := o.view.State()
	switch state {
	case boot.ClusterExited:
		return fmt.Sprintf("exited %d", status)
	case boot.ClusterPanicked:
		return "panicked"
	case boot.ClusterHangs:
		return "hangs"
	}
	beat := o.view.Beat()
	if now := clocks.Monotonic(); beat != o.beat {
		o.beat, o.heard = beat, now
		o.say("running")
	} else if patience := map[bool]time.Duration{true: startTime, false: silence}[beat == 0]; now-o.heard > int64(patience) {
		return "hangs"
	}
	return ""
}

// say tells what becomes of a cluster.
func (o *otherCluster) say(what string) { o.state.Store(&what) }

// longestLine is where a line of a log is broken.
const longestLine = 4 << 10

// show prints the log's new lines.
func (o *otherCluster) show() {
	text, lost := o.view.ReadLog()
	if lost > 0 {
		o.line = fmt.Appendf(o.line, "[%d bytes lost]\n", lost)
	}
	o.line = append(o.line, text...)
	for {
		i := bytes.IndexByte(o.line, '\n')
		skip := 1
		if i > longestLine || i < 0 && len(o.line) > longestLine {
			i, skip = longestLine, 0
		}
		if i < 0 {
			return
		}
		fmt.Fprintf(os.Stdout, "[%d] %s\n", o.index, o.line[:i])
		o.line = append(o.line[:0], o.line[i+skip:]...)
	}
}

// text is /proc/hardtack/clusters.
func (s *others) text() []byte {
	b := new(bytes.Buffer)
	line := func(index int, state string, lives int32, memory uint64) {
		fmt.Fprintf(b, "%d %s lives %d cpus %d memory %d MiB\n", index, state, lives, s.broker.CPUs(index), (int64(memory)+int64(s.broker.Borrowed(index))*broker.PieceSize)>>20)
	}
	line(0, "running", 1, s.memory)
	for _, o := range s.all {
		line(o.index, *o.state.Load(), o.lives.Load(), o.plan.End-o.plan.Base)
	}
	return b.Bytes()
}

// write is a write there: restart, stop or kill, and the number of a cluster; or cores or memory,
// how much, and the numbers of two.
func (s *others) write(text string) linux.Errno {
	if words := strings.Fields(text); len(words) == 4 {
		return s.move(words)
	}
	var what string
	var index int
	if n, err := fmt.Sscanf(text, "%s %d", &what, &index); n != 2 || err != nil || index < 1 || index > len(s.all) {
		return linux.EINVAL
	}
	switch what {
	case "restart", "stop", "kill":
	default:
		return linux.EINVAL
	}
	select {
	case s.all[index-1].ask <- what:
		return 0
	default:
		return linux.EBUSY
	}
}
