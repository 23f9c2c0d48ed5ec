package nucleus

import "hardtack/arch/amd64"

// Frames of the first cluster are shared with another one that maps them singly, in its direct
// map: the rings between processes of different clusters. The first one has taken them out of
// its allocator in the ordinary way, and keeps them until the other has unmapped them, or its
// processors have stopped. The boot archive is mapped by all, to be read, and stays for ever.

// MapFrames maps frames of the first cluster. It reports false, and maps none of them, if there
// is too little memory for the tables, or if one is not that cluster's to share.
func MapFrames(list []uint32) bool {
	moved.Lock()
	defer moved.Unlock()
	if cluster.index == 0 || len(list) == 0 || MemoryInfo().Free < 2*len(list)+64 {
		return false
	}
	for i, f := range list {
		piece := f / PieceFrames
		ok := !hasPiece(piece) && mayTake(piece) && !moved.shared[f]
		for _, other := range list[:i] {
			ok = ok && other != f
		}
		if !ok {
			return false
		}
	}
	if amd64.Syscall(sysShare, sliceAddr(list), uint64(len(list)), shareBoth) == 0 {
		return false
	}
	if moved.shared == nil {
		moved.shared = map[uint32]bool{}
	}
	for _, f := range list {
		moved.shared[f] = true
	}
	return true
}

// MapArchive maps the first cluster's boot archive in another one, to be read. It reports false if
// there is too little memory for the tables, or if the archive is not where it may be.
func MapArchive() bool {
	moved.Lock()
	defer moved.Unlock()
	first, end := bootInfo.initrd/pageSize, (bootInfo.initrd+bootInfo.initrdSz+pageSize-1)/pageSize
	n := end - first
	if cluster.index == 0 || n == 0 {
		return true
	}
	for piece := first / PieceFrames; piece <= (end-1)/PieceFrames; piece++ {
		if hasPiece(uint32(piece)) || !mayTake(uint32(piece)) {
			return false
		}
	}
	if uint64(MemoryInfo().Free) < n/128+64 {
		return false
	}
	for ; first < end; first += PieceFrames {
		amd64.Syscall(sysShare, first, min(PieceFrames, end-first), shareRead)
	}
	moved.archive = [2]uint64{bootInfo.initrd &^ (pageSize - 1), end * pageSize}
	return true
}

// UnmapFrames ends what MapFrames began. No processor has a translation of the frames then.
func UnmapFrames(list []uint32) {
	moved.Lock()
	defer moved.Unlock()
	for _, f := range list {
		if !moved.shared[f] {
			panic("nucleus: a frame that is not shared")
		}
		delete(moved.shared, f)
	}
	amd64.Syscall(sysShare, sliceAddr(list), uint64(len(list)), shareNot)
}

// SharedFrames returns how many frames of the first cluster are mapped.
func SharedFrames() int {
	moved.Lock()
	defer moved.Unlock()
	return len(moved.shared)
}

// sharesPiece tells whether a frame of a piece is shared; moved is locked.
func sharesPiece(piece uint32) bool {
	for f := range moved.shared {
		if f/PieceFrames == piece {
			return true
		}
	}
	return false
}

// What serveShare does.
const (
	shareNot  = iota // unmaps the frames
	shareBoth        // maps them
	shareRead        // maps n frames from the one with this number on, to be read
)

// serveShare maps frames in the direct map, each with a reference count, or unmaps them. Alone.
func serveShare(c *amd64.CPU, list, n, how uint64) uint64 {
	if how != shareRead && !touch(c, uintptr(list), int(4*n)) {
		return 0
	}
	for i := range n {
		frame := list + i
		if how != shareRead {
			frame = uint64(load32(uintptr(list + 4*i)))
		}
		e := directEntry(c, frame/PieceFrames)
		if *e&ptePresent == 0 {
			*e = kernelFrame(c) | ptePresent | pteWrite
		}
		entry := &table(*e & pteAddr)[frame%PieceFrames]
		pa := frame * pageSize
		switch how {
		case shareNot:
			*entry = 0
			continue
		case shareBoth:
			*entry = pa | ptePresent | pteWrite | pteNX | pteGlobal
		default:
			*entry = pa | ptePresent | pteNX | pteGlobal
		}
		behind(c, countsBase+pa/countsPiece*pageSize)
	}
	if how == shareNot {
		flushKernel(c)
	}
	return 1
}
