package nucleus

import (
	"errors"
	"sync/atomic"
	"time"

	"hardtack/abi/boot"
	"hardtack/arch/amd64"
)

// ClusterPlan is what the first cluster leaves to another one.
type ClusterPlan struct {
	Base, End uint64 // physical memory
	CPUs      int
}

// Clusters returns what the first cluster leaves to the others; the first of them is
// cluster 1.
func Clusters() (list []ClusterPlan) {
	for _, p := range cluster.plan[:cluster.others] {
		list = append(list, ClusterPlan{Base: p.base, End: p.end, CPUs: p.cpus})
	}
	return list
}

// ClusterIndex returns the running kernel's number; the first cluster is 0.
func ClusterIndex() int { return int(cluster.index) }

// ClusterFacts returns what the first cluster told this one, which is not the first.
func ClusterFacts() (apic []uint32, processors int, realtime uint64, seed []byte) {
	info := clusterInfo(direct(cluster.base))
	return info.APIC[:info.CPUs], int(info.Processors), info.Realtime, info.Seed[:]
}

// ClusterUp tells the first cluster that this one runs, and then that it still lives.
func ClusterUp() {
	s := clusterState(direct(cluster.base + boot.ClusterStatus))
	atomic.AddUint64(&s.Beat, 1)
	atomic.CompareAndSwapUint32(&s.State, boot.ClusterStarting, boot.ClusterRunning) // it may have ended on another processor
}

// ClusterHangs tells the first cluster that a processor of this one does.
func ClusterHangs(cpu int) {
	s := clusterState(direct(cluster.base + boot.ClusterStatus))
	atomic.StoreUint32(&s.Status, uint32(cpu))
	atomic.CompareAndSwapUint32(&s.State, boot.ClusterRunning, boot.ClusterHangs)
}

// A ClusterStart says how to start a cluster.
type ClusterStart struct {
	Index int      // from 1
	APIC  []uint32 // local APIC IDs of its processors

	Processors int // in the whole machine

	// Memory is what the cluster has of its plan: runs of whole pieces, in order. There are
	// boot.MaxRuns at most, and the first one begins where the plan does.
	Memory   []Range
	Cmdline  string
	Archive  Range  // of its root file system, in the first one's memory; it stays there
	Realtime uint64 // CLOCK_REALTIME at time 0 of the clock
	Seed     [64]byte
	Devices  []boot.Range // registers of the devices that are its own
}

// StartCluster puts a copy of the image's data and what else the cluster starts with into
// its memory, and starts its first processor. Processors of an earlier life of the
// cluster must have been stopped.
func StartCluster(s *ClusterStart) (*ClusterView, error) {
	if s.Index < 1 || s.Index > cluster.others {
		return nil, errors.New("nucleus: there is no such cluster")
	}
	p := &cluster.plan[s.Index-1]
	switch {
	case len(s.APIC) == 0 || len(s.APIC) > maxCPUs:
		return nil, errors.New("nucleus: a cluster has 1 to 64 processors")
	case s.APIC[0] >= boot.MaxMailboxes:
		return nil, errors.New("nucleus: the APIC ID is too large")
	case len(s.Devices) > len(boot.ClusterInfo{}.Devices):
		return nil, errors.New("nucleus: the cluster has too many devices")
	case len(s.Cmdline) >= len(boot.ClusterInfo{}.Cmdline):
		return nil, errors.New("nucleus: the command line is too long")
	}
	// The areas of the life before may still be looked at.
	const areas = boot.SharedPages
	if p.areas, p.before = p.before, p.areas; p.areas == 0 {
		if p.areas = AllocContiguous(areas); p.areas == 0 {
			return nil, errors.New("nucleus: too little memory for the cluster's areas")
		}
	}
	clear(RAM(p.areas, areas*pageSize))
	p.first = s.APIC[0]
	b := clusterBuild{areas: p.areas, ClusterStart: s, base: p.base, end: p.end}
	if len(s.Memory) == 0 || len(s.Memory) > boot.MaxRuns || s.Memory[0].Start != p.base {
		return nil, errors.New("nucleus: the cluster lacks its first memory")
	}
	if err := b.build(); err != nil {
		return nil, err
	}
	v := &ClusterView{index: s.Index, areas: p.areas}
	v.at = uintptr(amd64.Syscall(sysMapCluster, uint64(s.Index), 0, 0))
	amd64.Syscall(sysStartCluster, uint64(s.Index), uint64(s.APIC[0]), 0)
	time.Sleep(time.Millisecond) // the second start-up message (SDM vol. 3, 9.4.4.1)
	if v.state().Logged == 0 && v.state().State == boot.ClusterStarting && v.state().Beat == 0 {
		amd64.Syscall(sysStartCluster, uint64(s.Index), uint64(s.APIC[0]), 1)
	}
	return v, nil
}

// clusterBuild fills the memory of a cluster that does not run, through a window.
type clusterBuild struct {
	*ClusterStart
	base, end uint64 // physical
	window    uintptr
	next      uint64 // offset of the next page table
	shift     uint64
	areas     uint64
}

func (b *clusterBuild) build() error {
	text, _, rodata, imageEnd := imageBounds()
	gibs := (b.end-1)>>30 - b.base>>30 + 1
	tables := 2 + gibs + 2 + (imageEnd+largeSize-1)>>21 - text>>21
	data := boot.ClusterRoot + tables*pageSize
	if !b.fits(data + imageEnd - rodata) {
		return errors.New("nucleus: the memory is too little for the cluster")
	}
	b.shift = b.base + data - (rodata - boot.ImageBase)
	b.open(b.base, data+imageEnd-rodata)
	defer amd64.Syscall(sysWindow, 0, 0, 0)
	b.next = boot.ClusterRoot
	root := b.table()
	b.mapDirect(root)
	b.mapImage(root, text, rodata, imageEnd)
	b.fillData(data, rodata, imageEnd)
	clear(bytesAt(b.window+boot.ClusterStatus, pageSize))
	b.fillInfo()
	return nil
}

// ClusterNeeds is how much memory in a row is enough for a cluster to start in.
func ClusterNeeds() uint64 {
	_, _, rodata, imageEnd := imageBounds()
	return imageEnd - rodata + 1<<20 + minClusterMiB<<20
}

// fits reports whether there is memory for what the cluster starts with, and something to go on with.
func (b *clusterBuild) fits(data uint64) bool {
	total := uint64(0)
	for _, r := range b.Memory {
		total += r.End - r.Start
	}
	return b.Memory[0].End-b.Memory[0].Start >= data && total >= data+minClusterMiB/2<<20
}

// open turns the window to physical memory, from a multiple of largeSize on.
func (b *clusterBuild) open(pa, n uint64) {
	b.window = uintptr(amd64.Syscall(sysWindow, pa, n, 0))
}

// table takes a page for a page table and returns its offset.
func (b *clusterBuild) table() uint64 {
	t := b.next
	b.next += pageSize
	clear(bytesAt(b.window+uintptr(t), pageSize))
	return t
}

func (b *clusterBuild) set(table, index, entry uint64) {
	store64(b.window+uintptr(table+8*(index&511)), entry)
}

// mapDirect maps the cluster's memory where its kernel will have it.
func (b *clusterBuild) mapDirect(root uint64) {
	pdp := b.table()
	b.set(root, 256, b.base+pdp|ptePresent|pteWrite)
	pd, gib := uint64(0), uint64(0)
	for _, r := range b.Memory {
		for pa := r.Start; pa < r.End; pa += largeSize {
			if pd == 0 || pa>>30 != gib {
				pd, gib = b.table(), pa>>30
				b.set(pdp, gib, b.base+pd|ptePresent|pteWrite)
			}
			b.set(pd, pa>>21, pa|ptePresent|pteWrite|pteLarge)
		}
	}
}

// mapImage maps the text that all clusters share, and this one's data.
func (b *clusterBuild) mapImage(root, text, rodata, end uint64) {
	pdp, pd := b.table(), b.table()
	b.set(root, 511, b.base+pdp|ptePresent|pteWrite)
	b.set(pdp, 510, b.base+pd|ptePresent|pteWrite)
	pt := uint64(0)
	for va := text; va < end; va += pageSize {
		if pt == 0 || va%largeSize == 0 {
			pt = b.table()
			b.set(pd, va>>21, b.base+pt|ptePresent|pteWrite)
		}
		pa, flags := va-boot.ImageBase, uint64(ptePresent)
		if va >= rodata {
			pa, flags = pa+b.shift, flags|pteWrite
		}
		if va < kspace.holeStart || va >= kspace.holeEnd {
			b.set(pt, va>>12, pa|flags)
		}
	}
}

// fillData puts the data there that the linker made, and zeros behind them.
func (b *clusterBuild) fillData(at, rodata, end uint64) {
	copy(bytesAt(b.window+uintptr(at), int(cluster.size)), RAM(cluster.data, int(cluster.size)))
	zero := func(from, to uint64) { clear(bytesAt(b.window+uintptr(at+from-rodata), int(to-from))) }
	zero(rodata+cluster.size, kspace.holeStart)
	zero(kspace.holeEnd, end)
}

func (b *clusterBuild) fillInfo() {
	info := clusterInfo(b.window)
	*info = boot.ClusterInfo{
		Start: boot.StartInfo{Magic: boot.StartMagic, Version: 1, Flags: boot.ClusterFlag, MemMapEntries: uint32(len(b.Memory)),
			Cmdline: b.base + infoCmdline, MemMap: b.base + infoMap},
		Index: uint32(b.Index), CPUs: uint32(len(b.APIC)), Processors: uint32(b.Processors), First: BootAPICID(), AreaPages: boot.AreaPages, Areas: b.areas,
		Base: b.base, End: b.end, Top: frames.top, DataShift: b.shift,
		ClockHz: clock.hz, ClockBase: amd64.ClockBase, Realtime: b.Realtime, Seed: b.Seed,
	}
	for i, r := range b.Memory {
		info.Map[i] = boot.MemMapEntry{Addr: r.Start, Size: r.End - r.Start, Type: 1}
	}
	copy(info.APIC[:], b.APIC)
	copy(info.Devices[:], b.Devices)
	copy(info.Cmdline[:], b.Cmdline)
	if a := b.Archive; a.End > a.Start {
		info.Start.Modules, info.Start.ModList = 1, b.base+infoArchive
		info.Archive = boot.Module{Addr: a.Start, Size: a.End - a.Start}
	}
}

// ClusterAreas returns the memory that this cluster shares with the first one: an area for
// each direction of calls, and the network's wire.
func ClusterAreas() [3][]byte {
	info := clusterInfo(direct(cluster.base))
	const n = boot.SharedPages * pageSize
	return divide(bytesAt(uintptr(amd64.Syscall(sysMapShared, info.Areas, n, 0)), n))
}

// divide divides the memory that two clusters share.
func divide(b []byte) [3][]byte {
	const n = boot.AreaPages * pageSize
	return [3][]byte{b[:n:n], b[n : 2*n : 2*n], b[2*n:]}
}

// Areas returns the memory that the cluster shares with the first one.
func (v *ClusterView) Areas() [3][]byte { return divide(RAM(v.areas, boot.SharedPages*pageSize)) }

// A ClusterView is how the first cluster sees another one. What it reads there is what
// the other kernel wrote; none of it is trusted.
type ClusterView struct {
	index int
	at    uintptr // the first pages of its memory
	read  uint64  // of the log
	areas uint64
}

func (v *ClusterView) state() *boot.ClusterState { return clusterState(v.at + boot.ClusterStatus) }

// State returns the cluster's state, and the status of its end.
func (v *ClusterView) State() (state, status uint32) {
	s := v.state()
	state = atomic.LoadUint32(&s.State)
	return state, atomic.LoadUint32(&s.Status)
}

// Beat returns a number that changes while the cluster lives.
func (v *ClusterView) Beat() uint64 { return atomic.LoadUint64(&v.state().Beat) }

// ReadLog returns what the cluster logged since the last call, and how many bytes before
// that were lost.
func (v *ClusterView) ReadLog() (text []byte, lost uint64) {
	written := atomic.LoadUint64(&v.state().Logged)
	n := written - v.read
	if n > boot.ClusterLogLen { // more than there is room for, or nonsense
		lost = n - boot.ClusterLogLen
		n = boot.ClusterLogLen
	}
	from := written - n
	v.read = written
	text = make([]byte, n)
	ring := bytesAt(v.at+boot.ClusterLog, boot.ClusterLogLen)
	for i := range text {
		text[i] = ring[(from+uint64(i))%boot.ClusterLogLen]
	}
	return text, lost
}

// Stop stops processors of the cluster, wherever they are: first those that run for sure, then
// those that one of them may be starting. It waits until they have stopped, and reports false
// if one does not.
func (v *ClusterView) Stop(running, starting []uint32) bool {
	return seize(running) && seize(starting)
}

// serveWindow maps physical memory of other clusters for a while, in large pages. Only
// StartCluster has a window, one at a time. Size 0 ends it. Alone.
func serveWindow(c *amd64.CPU, pa, size uint64) uint64 {
	pd := windowTable(c)
	clear(table(pd)[:])
	flushKernel(c)
	if size == 0 {
		return 0
	}
	first := pa &^ (largeSize - 1)
	for i := range (pa + size - first + largeSize - 1) >> 21 {
		table(pd)[i] = (first + i<<21) | ptePresent | pteWrite | pteLarge | pteNX | pteGlobal
	}
	return windowBase
}

// windowBase is far behind the devices' registers.
const windowBase = deviceEnd - 1<<30

// windowTable returns the page directory of the window.
func windowTable(c *amd64.CPU) uint64 {
	e := &table(table(kspace.root)[386] & pteAddr)[511]
	if *e&ptePresent == 0 {
		*e = kernelFrame(c) | ptePresent | pteWrite
	}
	return *e & pteAddr
}

// serveMapCluster maps the first pages of a cluster's memory, once. Alone.
func serveMapCluster(c *amd64.CPU, index uint64) uint64 {
	p := &cluster.plan[index-1]
	if p.view == 0 {
		p.view = uintptr(mapPages(c, p.base, boot.ClusterRoot, 0))
	}
	return uint64(p.view)
}

// serveStartCluster starts the first processor of a cluster; stage as for sendStart.
func serveStartCluster(index uint64, apicID uint32, stage uint64) uint64 {
	base := cluster.plan[index-1].base
	postStart(apicID, base+boot.ClusterRoot, uint64(amd64.BootEntry()), base)
	sendStart(apicID, stage)
	return 0
}

// servePark takes a processor away from whatever it does; stage as for sendStart, and 2
// only asks whether it is parked.
func servePark(apicID uint32, stage uint64) uint64 {
	m := mailboxes() + uintptr(apicID)*boot.MailboxSize
	if stage < 2 {
		if stage == 0 {
			store64(m+24, 0)
			postStart(apicID, bootRoot(), uint64(amd64.ParkEntry()), uint64(m))
		}
		sendStart(apicID, stage)
	}
	return load64(m + 24)
}
