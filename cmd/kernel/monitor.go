package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"runtime/metrics"
	"strings"
	"time"

	"hardtack/abi/boot"
	"hardtack/abi/cluster"
	"hardtack/abi/linux"
	"hardtack/arch/amd64"
	proto "hardtack/idl/monitor"
	"hardtack/kernel/base/clocks"
	"hardtack/kernel/base/ktime"
	"hardtack/kernel/base/mem"
	"hardtack/kernel/base/random"
	"hardtack/kernel/fd/channel"
	"hardtack/kernel/fs/devfs"
	"hardtack/kernel/fs/vfs"
	"hardtack/kernel/net/clusternet"
	"hardtack/kernel/process/proc"
	"hardtack/kernel/pseudofs/procfs"
	"hardtack/monitor"
	"hardtack/msg"
	"hardtack/nucleus"
)

// clusterMinor is the number of /dev/cluster, where Linux has none.
const clusterMinor = 240

// joinTime is how long a cluster may take from its start until its monitor answers.
const joinTime = 30 * time.Second

// join connects to another cluster's monitor.
func (k *kernel) join(index int, out, in *monitor.Link) {
	ctx, cancel := context.WithTimeout(context.Background(), joinTime)
	defer cancel()
	err := k.others.monitor.Join(ctx, index, out, in)
	if err != nil && !errors.Is(err, msg.ErrPeerGone) && !errors.Is(err, io.EOF) { // else it has ended, which is told anyway
		warn("the monitor of cluster %d: %v", index, err)
	}
	if err == nil && k.others.broker != nil {
		k.others.broker.Joined(index, monitor.Remote{Monitor: k.others.monitor, Index: index})
	}
}

// startMonitor makes this kernel's monitor, which other clusters ring for.
func (k *kernel) startMonitor() {
	k.others.net = clusternet.New(nucleus.ClusterIndex())
	m, err := monitor.New(host{k, &k.estate})
	if err == nil {
		err = nucleus.OnDoorbell(func() {
			m.Rung(nucleus.DoorbellDelay)
			k.others.net.Rung()
		})
	}
	if err != nil {
		k.fail("the monitor: %v", err)
	}
	k.others.monitor = m
	d := &channel.Device{Monitor: m, Cluster: nucleus.ClusterIndex()}
	vfs.RegisterChar(linux.MISC_MAJOR, clusterMinor, d.Open)
	if e := devfs.AddChar(strings.TrimPrefix(cluster.Device, "/dev/"), linux.Makedev(linux.MISC_MAJOR, clusterMinor)); e != 0 {
		warn("%s: %v", cluster.Device, e)
	}
	procfs.RegisterAdmin("hardtack/monitors", k.monitorsText, nil)
	procfs.RegisterAdmin("hardtack/rings", k.ringsText, nil)
}

// host is what the monitor needs of the kernel.
type host struct {
	k *kernel
	*estate
}

func (h host) Health() (out proto.HealthReply) {
	m := nucleus.MemoryInfo()
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/gc/cycles/total:gc-cycles"}}
	metrics.Read(sample)
	out = proto.HealthReply{Processors: uint32(bits.OnesCount64(proc.OnlineCPUs())), Memory: uint64(m.Total) * mem.PageSize, Unused: uint64(m.Free) * mem.PageSize,
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

// distance is how far away another monitor is: the least time of a call and its answer at once
// after another, and when both kernels have slept; and of a doorbell and the other's.
type distance struct {
	awake, asleep int64
	bell          monitor.Doorbell
	err           error
}

// measure calls and rings. It waits for as long as the cluster runs and does not answer.
func (k *kernel) measure(index int, c *proto.Client) (d distance) {
	least := func(n int, pause time.Duration, do func() error) int64 {
		least := int64(1 << 62)
		for range n {
			if d.err == nil {
				time.Sleep(pause)
				start := clocks.Monotonic()
				d.err = do()
				least = min(least, clocks.Monotonic()-start)
			}
		}
		return least
	}
	ping := func() error {
		_, err := c.Ping(context.Background(), proto.PingCall{Number: 1})
		return err
	}
	const pause = 2 * time.Millisecond
	d.awake, d.asleep = least(100, 0, ping), least(10, pause, ping)
	least(10, pause, func() error {
		b, err := k.others.monitor.Bell(index)
		if d.bell.Round == 0 || b.Ring+b.Wake < d.bell.Ring+d.bell.Wake {
			d.bell = b
		}
		return err
	})
	return d
}

// monitorsTime is how long /proc/hardtack/monitors waits for a cluster.
const monitorsTime = 30 * time.Second

// monitorsText is what the other monitors answer, and how far away they are.
func (k *kernel) monitorsText() []byte {
	b := new(bytes.Buffer)
	for i := range boot.MaxClusters {
		c, err := k.others.monitor.Peer(i)
		if err != nil {
			continue
		}
		ctx, cancel := context.WithTimeout(context.Background(), monitorsTime)
		h, err := c.Health(ctx, proto.HealthCall{})
		measured := make(chan distance, 1)
		var d distance
		if err == nil {
			go func() { measured <- k.measure(i, c) }()
			select {
			case d = <-measured:
				err = d.err
			case <-ctx.Done():
				err = ctx.Err()
			}
		}
		cancel()
		if err != nil {
			fmt.Fprintf(b, "%d %v\n", i, err)
			continue
		}
		fmt.Fprintf(b, "%d cpus %d memory %d free %d heap %d collections %d processes %d awake %d ns asleep %d ns ring %d ns wake %d ns back %d ns\n",
			i, h.Processors, h.Memory, h.Unused, h.Heap, h.Collections, h.Processes, d.awake, d.asleep, d.bell.Ring, d.bell.Wake, d.bell.Round)
	}
	return b.Bytes()
}

// joinCluster is what another than the first cluster has instead of firmware.
func (k *kernel) joinCluster() {
	apic, processors, _, seed := nucleus.ClusterFacts()
	k.processors = processors
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
	_, _, realtime, _ := nucleus.ClusterFacts()
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
	k.others.net.Join(clusternet.NewWire(areas[2], 1, ring))
	go func() {
		var p pulse
		for probed := int64(0); ; time.Sleep(beatPeriod) {
			if now := clocks.Monotonic(); now-probed > probePeriod {
				probed = now
				if cpu := p.look(now); cpu >= 0 {
					warn("processor %d takes no interrupts", cpu)
					nucleus.ClusterHangs(cpu)
					return
				}
			}
			nucleus.ClusterUp()
		}
	}()
}
