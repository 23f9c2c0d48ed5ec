package procfs

import (
	"fmt"

	"hardtack/abi/linux"
	"hardtack/kernel/mem"
	"hardtack/kernel/proc"
	"hardtack/kernel/vm"
)

// appendSizes writes what smaps says of a mapping besides.
func appendSizes(b []byte, s *vm.Space, m *vm.MapInfo) []byte {
	r := s.Residency(m.Start, m.End)
	locked := uint64(0)
	if m.Locked {
		locked = r.PSS
	}
	for _, f := range []struct {
		name string
		v    uint64
	}{{"Size", m.End - m.Start}, {"KernelPageSize", mem.PageSize}, {"MMUPageSize", mem.PageSize}} {
		b = appendSize(b, f.name, f.v)
	}
	b = appendSize(b, "Rss", r.RSS)
	b = appendSize(b, "Pss", r.PSS)
	return appendRest(b, &r, locked)
}

func appendSize(b []byte, name string, v uint64) []byte {
	return fmt.Appendf(b, "%-16s%8d kB\n", name+":", v>>10)
}

// appendRest writes the lines that smaps and smaps_rollup have in common.
func appendRest(b []byte, r *vm.Residency, locked uint64) []byte {
	for _, f := range []struct {
		name string
		v    uint64
	}{{"Shared_Clean", r.SharedClean}, {"Shared_Dirty", r.SharedDirty}, {"Private_Clean", r.PrivateClean}, {"Private_Dirty", r.PrivateDirty},
		{"Referenced", r.Referenced}, {"Anonymous", r.Anonymous}, {"LazyFree", 0}, {"AnonHugePages", 0}, {"ShmemPmdMapped", 0}, {"FilePmdMapped", 0},
		{"Shared_Hugetlb", 0}, {"Private_Hugetlb", 0}, {"Swap", 0}, {"SwapPss", 0}, {"Locked", locked}} {
		b = appendSize(b, f.name, f.v)
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
	defer s.Release()
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
	b = appendSize(b, "Pss_Anon", sum.PSS-min(file+shmem, sum.PSS))
	b = appendSize(b, "Pss_File", file)
	b = appendSize(b, "Pss_Shmem", shmem)
	return appendRest(b, &sum, locked), 0
}
