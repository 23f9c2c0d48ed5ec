package procfs

import (
	"fmt"
	"strconv"

	"hardtack/abi/linux"
	"hardtack/kernel/mm/vm"
	"hardtack/kernel/process/proc"
)

// A line of sizes is a name and so many kB, right in eight columns. Nearly all are 0,
// and a program may have very many mappings: a line begins as a copy of the one with 0.

// sizeLine is how long a line is whose number fits.
const sizeLine = 28

// sizeRest are the lines that smaps and smaps_rollup have in common, all of them 0.
var sizeRest = func() (b []byte) {
	for _, name := range [...]string{"Shared_Clean", "Shared_Dirty", "Private_Clean", "Private_Dirty", "Referenced", "Anonymous",
		"LazyFree", "AnonHugePages", "ShmemPmdMapped", "FilePmdMapped", "Shared_Hugetlb", "Private_Hugetlb", "Swap", "SwapPss", "Locked"} {
		b = appendSize(b, name, 0)
	}
	return b
}()

// appendSizes writes what smaps says of a mapping besides.
func appendSizes(b []byte, s *vm.Space, m *vm.MapInfo) []byte {
	r := s.Residency(m.Start, m.End)
	locked := uint64(0)
	if m.Locked {
		locked = r.PSS
	}
	b = appendSize(b, "Size", m.End-m.Start)
	b = append(b, "KernelPageSize:        4 kB\nMMUPageSize:           4 kB\n"...)
	b = appendSize(b, "Rss", r.RSS)
	b = appendSize(b, "Pss", r.PSS)
	b = appendSize(b, "Pss_Dirty", r.PSSDirty)
	return appendRest(b, &r, locked)
}

// appendSize writes a line.
func appendSize(b []byte, name string, v uint64) []byte {
	n := len(b)
	b = append(append(b, name...), ':')
	b = append(b, "                       0 kB\n"[len(b)-n:]...)
	if v != 0 {
		b = putSize(b, n, v)
	}
	return b
}

// putSize puts a size into a line with 0 that begins at n and is followed by such
// lines only.
func putSize(b []byte, n int, v uint64) []byte {
	v >>= 10
	if v >= 1e8 { // it is wider than its columns
		rest := string(b[n+sizeLine:])
		b = append(strconv.AppendUint(b[:n+16], v, 10), " kB\n"...)
		return append(b, rest...)
	}
	for i := n + sizeLine - 5; v > 0; i-- {
		b[i] = byte('0' + v%10)
		v /= 10
	}
	return b
}

// appendRest writes the lines that smaps and smaps_rollup have in common.
func appendRest(b []byte, r *vm.Residency, locked uint64) []byte {
	n := len(b)
	b = append(b, sizeRest...)
	// From the last on: a line that is longer moves those behind it.
	b = putSize(b, n+14*sizeLine, locked)
	for i, v := range [...]uint64{r.Anonymous, r.Referenced, r.PrivateDirty, r.PrivateClean, r.SharedDirty, r.SharedClean} {
		if v != 0 {
			b = putSize(b, n+(5-i)*sizeLine, v)
		}
	}
	return b
}

// readRollup is smaps_rollup: the sums over all mappings.
func readRollup(x *about) ([]byte, linux.Errno) {
	s, _, e := x.process().InspectSpace(x.t, x.c, proc.FSCreds)
	if e != 0 {
		return nil, linux.EACCES
	}
	if s == nil {
		return nil, linux.ESRCH
	}
	defer s.EndLook()
	var sum vm.Residency
	var first, last, locked, file, shmem uint64
	s.Maps(func(m vm.MapInfo) bool {
		if last == 0 {
			first = m.Start
		}
		last = m.End
		r := s.Residency(m.Start, m.End)
		sum.Add(&r)
		if m.Locked {
			locked += r.PSS
		}
		switch {
		case m.File != nil:
			file += r.PSS - min(r.Anonymous, r.PSS)
		case m.Object != nil:
			shmem += r.PSS
		}
		return true
	})
	b := fmt.Appendf(nil, "%08x-%08x ---p 00000000 00:00 0 ", first, last)
	for len(b) < 73 {
		b = append(b, ' ')
	}
	b = append(b, "[rollup]\n"...)
	b = appendSize(b, "Rss", sum.RSS)
	b = appendSize(b, "Pss", sum.PSS)
	b = appendSize(b, "Pss_Dirty", sum.PSSDirty)
	b = appendSize(b, "Pss_Anon", sum.PSS-min(file+shmem, sum.PSS))
	b = appendSize(b, "Pss_File", file)
	b = appendSize(b, "Pss_Shmem", shmem)
	return appendRest(b, &sum, locked), 0
}
