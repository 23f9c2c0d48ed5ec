package nucleus

import (
	"slices"
	"sync"

	"hardtack/arch/amd64"
)

// Memory moves between the kernels of a machine in pieces of 2 MiB, none of whose frames is in
// use. The kernel that gives takes the frames out of its allocator, clears them, and takes them
// out of its direct map; when every processor has forgotten that mapping, the other kernel
// maps them, and gives them to its allocator.
//
// The stack of free frames and the reference counts have room for the memory that the kernel
// starts with. In the first cluster that is all of the machine's. In another one both are
// mapped once more, at addresses behind which there is room for any memory, and pages come
// there as pieces do.
const (
	countsBase = windowBase - 1<<30
	stackBase  = countsBase - 1<<30
)

// PieceFrames is how many frames a piece has.
const PieceFrames = largeSize / pageSize

// spreadFrames maps the stack and the counts where they can grow. Before interrupts exist.
func spreadFrames() {
	f := &frames
	if cluster.index == 0 {
		return
	}
	bottom := cluster.base &^ (countsPiece - 1)
	first := bottom / countsPiece
	for i := range (f.top - bottom + countsPiece - 1) / countsPiece {
		place := func(at uint64, pa uint64) {
			*kernelPTE(nil, at, true) = pa | ptePresent | pteWrite | pteNX | pteGlobal
		}
		place(stackBase+i*pageSize, uint64(f.stack)-uint64(direct(0))+i*pageSize)
		place(countsBase+(first+i)*pageSize, uint64(f.counts)-uint64(direct(0))+(first+i)*pageSize)
	}
	f.stack, f.counts = stackBase, countsBase
}

// moved is which pieces of memory this kernel has not that it started with, and which it has
// that it did not.
var moved struct {
	sync.Mutex
	given, taken map[uint32]bool // guarded by Mutex
	shared       map[uint32]bool // frames of the first cluster; guarded by Mutex
	archive      [2]uint64       // physical addresses of that cluster's boot archive, if it is mapped; guarded by Mutex
}

// change notes that a piece went or came; moved is locked.
func change(piece uint32, here bool) {
	from, to := &moved.given, &moved.taken
	if !here {
		from, to = to, from
	}
	if (*from)[piece] {
		delete(*from, piece)
		return
	}
	if *to == nil {
		*to = map[uint32]bool{}
	}
	(*to)[piece] = true
}

// hasPiece tells whether all of a piece is this kernel's; moved is locked.
func hasPiece(piece uint32) bool {
	whole, _ := ownMemory(uint64(piece)*largeSize, uint64(piece+1)*largeSize)
	return moved.taken[piece] || whole && !moved.given[piece]
}

// OfferPieces returns at most so many pieces of memory that are free, and leaves the kernel
// its reserve and something to go on with. Those that came from other clusters come first.
func OfferPieces(most int) []uint32 {
	m := MemoryInfo()
	if most = min(most, (m.Free-2*m.Reserve)/PieceFrames); most <= 0 {
		return nil
	}
	free := make([]uint16, kspace.direct/largeSize)
	if amd64.Syscall(sysOffer, uint64(uintptr(sliceStart(free))), uint64(len(free)), 0) == 0 {
		return nil
	}
	moved.Lock()
	defer moved.Unlock()
	var list, own []uint32
	for p, n := range slices.Backward(free) {
		switch {
		case n != PieceFrames:
		case moved.taken[uint32(p)]:
			list = append(list, uint32(p))
		default:
			own = append(own, uint32(p))
		}
	}
	list = append(list, own...)
	return list[:min(most, len(list))]
}

// ReleasePieces gives up those of the pieces all of whose frames are free, and returns them.
// They are clear and not mapped any more.
func ReleasePieces(pieces []uint32) (released []uint32) {
	moved.Lock()
	defer moved.Unlock()
	flags := make([]uint16, kspace.direct/largeSize)
	wanted := 0
	m := MemoryInfo()
	for _, p := range pieces {
		if int(p) < len(flags) && hasPiece(p) && (wanted+1)*PieceFrames <= m.Free-2*m.Reserve {
			flags[p] = wantedPiece
			wanted++
		}
	}
	if wanted == 0 || amd64.Syscall(sysClaim, uint64(uintptr(sliceStart(flags))), uint64(len(flags)), 0) == 0 {
		return nil
	}
	for p, n := range flags {
		if n == wantedPiece|PieceFrames {
			clear(RAM(uint64(p)*largeSize, largeSize))
			released = append(released, uint32(p))
			change(uint32(p), false)
		}
	}
	if len(released) > 0 {
		amd64.Syscall(sysUnmap, sliceAddr(released), uint64(len(released)), 0)
	}
	return released
}

// AdoptPieces has the kernel use memory that nobody maps. It reports false, and uses none of
// it, if there is too little memory for the tables, or what is named is no other memory of the
// machine.
func AdoptPieces(pieces []uint32) bool {
	moved.Lock()
	defer moved.Unlock()
	var list []uint32
	for _, p := range pieces {
		switch {
		case hasPiece(p):
		case slices.Contains(list, p) || !mayTake(p) || sharesPiece(p):
			return false
		default:
			list = append(list, p)
		}
	}
	// Two tables, a page of counts, and one of the stack for each at worst.
	if MemoryInfo().Free < 4*len(list)+64 {
		return false
	}
	if len(list) > 0 && amd64.Syscall(sysAdopt, sliceAddr(list), uint64(len(list)), 0) == 0 {
		return false
	}
	for _, p := range list {
		change(p, true)
	}
	return true
}

// mayTake tells whether a piece could be another cluster's; moved is locked.
func mayTake(piece uint32) bool {
	start, end := uint64(piece)*largeSize, uint64(piece+1)*largeSize
	if end > kspace.direct || start < 1<<20 {
		return false
	}
	if _, any := ownMemory(start, end); any {
		return moved.given[piece]
	}
	return true
}

// wantedPiece marks a piece that is to be taken from the allocator, beside how many of its
// frames are free.
const wantedPiece = 1 << 15

// countFree adds the free frames of pieces to their counters; with wanted, of those pieces
// alone that are marked.
func countFree(free uintptr, n uint64, wanted uint16) {
	add := func(piece, frames uint64) {
		if at := free + uintptr(2*piece); piece < n && load16(at)&wanted == wanted {
			store16(at, load16(at)+uint16(frames))
		}
	}
	for i := range frames.regions {
		r := &frames.region[i]
		for at := r.start; at < r.end; {
			next := min((at|(largeSize-1))+1, r.end)
			add(at/largeSize, (next-at)/pageSize)
			at = next
		}
	}
	for i := range frames.depth {
		add(uint64(load32(frames.stack+uintptr(i)*4))/PieceFrames, 1)
	}
}

// serveOffer counts the free frames of each piece. Alone.
func serveOffer(c *amd64.CPU, free, n, _ uint64) uint64 {
	if !touch(c, uintptr(free), int(2*n)) {
		return 0
	}
	memory.Acquire()
	countFree(uintptr(free), n, 0)
	memory.Release()
	return 1
}

// serveClaim takes those marked pieces out of the allocator that are free. Alone.
func serveClaim(c *amd64.CPU, flags, n, _ uint64) uint64 {
	if !touch(c, uintptr(flags), int(2*n)) {
		return 0
	}
	memory.Acquire()
	claim(uintptr(flags), n)
	memory.Release()
	return 1
}

func claim(flags uintptr, n uint64) {
	f := &frames
	countFree(flags, n, wantedPiece)
	claimed := func(pa uint64) bool {
		piece := pa / largeSize
		return piece < n && load16(flags+uintptr(2*piece)) == wantedPiece|PieceFrames
	}
	depth := 0
	for i := range f.depth {
		frame := load32(f.stack + uintptr(i)*4)
		if !claimed(uint64(frame) << 12) {
			store32(f.stack+uintptr(depth)*4, frame)
			depth++
		}
	}
	f.depth = depth
	for i := 0; i < f.regions; i++ { // grows
		cutRegion(i, claimed)
	}
	taken := int64(0)
	for p := range n {
		if claimed(p * largeSize) {
			taken += PieceFrames
		}
	}
	f.free.Add(-taken)
	f.total.Add(-taken)
}

// cutRegion takes pieces out of a region of untouched RAM, from its end on: what is left
// behind them becomes a region of its own, or goes to the stack.
func cutRegion(i int, claimed func(pa uint64) bool) {
	f := &frames
	r := &f.region[i]
	for at := (r.end - 1) &^ (largeSize - 1); r.start < r.end; at -= largeSize {
		if claimed(at) {
			tail, end := at+largeSize, r.end
			r.end = max(at, r.start)
			if tail < end && !addPart(tail, end) {
				for pa := end; pa > tail; pa -= pageSize {
					store32(f.stack+uintptr(f.depth)*4, uint32((pa-pageSize)>>12))
					f.depth++
				}
			}
		}
		if at <= r.start {
			return
		}
	}
}

// addPart makes a region of free RAM, if there is a place for one.
func addPart(start, end uint64) bool {
	f := &frames
	for i := range f.regions {
		r := &f.region[i]
		switch {
		case r.start == r.end:
			r.start, r.end = start, end
			return true
		case r.end == start:
			r.end = end
			return true
		case r.start == end:
			r.start = start
			return true
		}
	}
	if f.regions == len(f.region) {
		return false
	}
	f.region[f.regions].start, f.region[f.regions].end = start, end
	f.regions++
	return true
}

// serveUnmap takes pieces out of the direct map. Alone.
func serveUnmap(c *amd64.CPU, list, n uint64) uint64 {
	if !touch(c, uintptr(list), int(4*n)) {
		return 0
	}
	for i := range n {
		*directEntry(c, uint64(load32(uintptr(list+4*i)))) = 0
	}
	flushKernel(c)
	return 1
}

// serveAdopt maps pieces and gives them to the allocator. Alone.
func serveAdopt(c *amd64.CPU, list, n uint64) uint64 {
	if !touch(c, uintptr(list), int(4*n)) {
		return 0
	}
	f := &frames
	for i := range n {
		piece := uint64(load32(uintptr(list + 4*i)))
		pa := piece * largeSize
		e := directEntry(c, piece)
		empty := *e // a table, if frames of the piece were shared before
		*e = pa | ptePresent | pteWrite | pteLarge | pteNX | pteGlobal
		if empty&ptePresent != 0 && empty&pteLarge == 0 {
			flushKernel(c)
			memory.Acquire()
			freeFrame(empty & pteAddr)
			memory.Release()
			frames.kernel.Add(-1)
		}
		if cluster.index > 0 {
			behind(c, countsBase+pa/countsPiece*pageSize)
			behind(c, stackBase+uint64(f.total.Load()+PieceFrames-1)*4)
		}
		memory.Acquire()
		f.free.Add(PieceFrames)
		f.total.Add(PieceFrames)
		if !addPart(pa, pa+largeSize) {
			for at := pa + largeSize; at > pa; at -= pageSize {
				store32(f.stack+uintptr(f.depth)*4, uint32((at-pageSize)>>12))
				f.depth++
			}
		}
		memory.Release()
	}
	return 1
}

// behind makes sure that there is memory behind an address.
func behind(c *amd64.CPU, va uint64) {
	if e := kernelPTE(c, va, true); *e&ptePresent == 0 {
		*e = kernelFrame(c) | ptePresent | pteWrite | pteNX | pteGlobal
	}
}

// directEntry returns the entry of the direct map for a piece, of a table that maps pieces.
func directEntry(c *amd64.CPU, piece uint64) *uint64 {
	pdp := table(table(kspace.root)[256] & pteAddr)
	e := &pdp[piece>>9]
	switch {
	case *e&ptePresent == 0:
		*e = kernelFrame(c) | ptePresent | pteWrite
	case *e&pteLarge != 0: // a whole GiB: the same in pieces
		pd := kernelFrame(c)
		for i := range uint64(512) {
			table(pd)[i] = *e + i*largeSize
		}
		*e = pd | ptePresent | pteWrite
	}
	return &table(*e & pteAddr)[piece&511]
}
