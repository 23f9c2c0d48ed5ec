package nucleus

import (
	"runtime/debug"

	"hardtack/abi/boot"
)

// ForeignPages counts the pages in the kernel's half of the address space that are other
// clusters' memory and that it did not agree to share: none.
func ForeignPages() (n int) {
	w := walk{visit: func(pa, size uint64) {
		if !mayMap(pa, size) {
			n++
		}
	}}
	moved.Lock()
	defer moved.Unlock()
	w.tables(kspace.root, 39, 256, ptePresent|pteWrite|pteUser)
	return n
}

// mayMap tells whether this cluster's tables may map physical memory; moved is locked.
func mayMap(pa, size uint64) bool {
	within := func(start, end uint64) bool { return pa >= start && pa+size <= end }
	if whole, _ := ownMemory(pa, pa+size); whole && len(moved.given) == 0 {
		return true
	}
	if size == pageSize && moved.shared[uint32(pa/pageSize)] {
		return true
	}
	if pa >= moved.archive[0] && pa+size <= moved.archive[1] {
		return true
	}
	all := true
	for p := pa / largeSize; p <= (pa+size-1)/largeSize; p++ {
		own, _ := ownMemory(max(pa, p*largeSize), min(pa+size, (p+1)*largeSize))
		all = all && (own && !moved.given[uint32(p)] || moved.taken[uint32(p)])
	}
	if all {
		return true
	}
	if cluster.index == 0 {
		for _, p := range cluster.plan[:cluster.others] { // its status and log
			if within(p.base, p.base+boot.ClusterRoot) {
				return true
			}
		}
		return false
	}
	info := clusterInfo(direct(cluster.base))
	for _, d := range info.Devices {
		if d.Size > 0 && within(d.Start&^(pageSize-1), (d.Start+d.Size+pageSize-1)&^(pageSize-1)) {
			return true
		}
	}
	return within(info.Areas, info.Areas+boot.SharedPages*pageSize) || within(bootInfo.text, bootInfo.rodata) ||
		within(boot.Mailboxes, boot.Mailboxes+pageSize) || within(defaultAPICPA, defaultAPICPA+pageSize)
}

// ReachForeign reads memory of other clusters where the direct map would have it, and
// reports how many of the tries did not fault, and how many there were.
func ReachForeign() (reached, tries int) {
	try := func(pa uint64) {
		tries++
		defer func() { _ = recover() }()
		_ = load8(direct(pa))
		reached++
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	if cluster.index > 0 {
		if pa := moved.archive[0]; pa != 0 { // that may be read only
			tries++
			func() {
				defer func() { _ = recover() }()
				store64(direct(pa), load64(direct(pa)))
				reached++
			}()
		}
		for _, pa := range [...]uint64{boot.StubBase, bootInfo.end - cluster.shift, cluster.base - 1, cluster.end, cluster.end + 1<<30} {
			try(pa)
		}
	}
	for _, p := range cluster.plan[:cluster.others] {
		for _, pa := range [...]uint64{p.base, p.base + boot.ClusterRoot, p.base/2 + p.end/2, p.end - 1} {
			try(pa)
		}
	}
	return reached, tries
}
