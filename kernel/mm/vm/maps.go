package vm

import (
	"strings"

	"hardtack/abi/linux"
	"hardtack/kernel/base/mem"
	"hardtack/kernel/fs/vfs"
)

// MapInfo is one line of /proc/PID/maps.
type MapInfo struct {
	Start, End uint64
	Prot       uint32 // PROT_*
	Shared     bool
	GrowsDown  bool
	Locked     bool
	Offset     uint64
	Object     mem.Object // nil for private anonymous memory
	File       *vfs.File  // valid during the call only
	Name       string     // "[heap]", "[stack]", … or empty

	flags uint32
}

// mapsBatch is how many mappings are looked at in the end for each time the lock is
// taken: two at first, as many callers want no more, then twice as many each time.
const mapsBatch = 32

// Maps calls f for each mapping in order until it says false. No lock is held
// meanwhile; mappings that come or go may be missed.
func (s *Space) Maps(f func(MapInfo) bool) { s.MapsFrom(0, f) }

// MapsFrom is Maps for the mappings that end behind an address.
func (s *Space) MapsFrom(at uint64, f func(MapInfo) bool) {
	var batch [mapsBatch]MapInfo
	for most := 2; ; most = min(2*most, mapsBatch) {
		n := 0
		s.mu.RLock()
		for i := s.find(at); i < s.vmas.len() && n < most; i++ {
			v := s.vmas.at(i)
			m := MapInfo{Start: v.start, End: v.end, Prot: v.prot, Shared: !v.private(), GrowsDown: v.flags&vGrowsDown != 0, Locked: v.flags&vLocked != 0,
				Object: v.obj, flags: v.flags, File: v.file, Name: v.name}
			if v.obj != nil {
				m.Offset = v.off
			}
			if v.file != nil {
				v.file.Get()
			}
			batch[n] = m
			n++
			at = v.end
		}
		s.mu.RUnlock()
		more := true
		for _, m := range batch[:n] {
			more = more && f(m)
			if m.File != nil {
				m.File.Put()
			}
		}
		if !more || n < most {
			return
		}
	}
}

// Stats are an address space's sizes in bytes (/proc/PID/status).
type Stats struct {
	Size, Peak, Data, Stack, Exec, Lib, Locked, Tables uint64
	RSS, HWM, RSSAnon, RSSFile, RSSShmem               uint64
}

// Stats returns the sizes.
func (s *Space) Stats() Stats {
	s.notePeak()
	st := Stats{
		RSSAnon:  bytesOf(s.anon.Load()),
		RSSFile:  bytesOf(s.file.Load()),
		RSSShmem: bytesOf(s.shmem.Load()),
		HWM:      uint64(s.hwm.Load()) << pageShift,
		Tables:   uint64(s.tables.Load()+1) << pageShift,
	}
	st.RSS = st.RSSAnon + st.RSSFile + st.RSSShmem
	s.mu.RLock()
	defer s.mu.RUnlock()
	st.Size, st.Peak, st.Locked = s.size, s.peak, s.locked
	for i := range s.vmas.len() {
		v := s.vmas.at(i)
		n := v.end - v.start
		switch {
		case v.flags&vGrowsDown != 0:
			st.Stack += n
		case isData(v):
			st.Data += n
		case v.prot&linux.PROT_EXEC != 0 && strings.HasPrefix(v.name, "["):
		case v.prot&linux.PROT_EXEC != 0 && v.file != nil && st.Exec == 0:
			st.Exec += n // the program is mapped below its libraries
		case v.prot&linux.PROT_EXEC != 0 && v.file != nil:
			st.Lib += n
		}
	}
	return st
}

// bytesOf turns a counter, which may lag behind for a moment, into bytes.
func bytesOf(pages int64) uint64 { return uint64(max(pages, 0)) << pageShift }

// RSS returns the frames that the space holds: resident pages and page tables.
// It is what tells how much an end of the program would give back.
func (s *Space) RSS() int64 { return s.pages() + s.tables.Load() + 1 }

// pages returns the resident pages.
func (s *Space) pages() int64 { return max(s.anon.Load()+s.file.Load()+s.shmem.Load(), 0) }

// notePeak keeps the high-water mark of resident pages; it is called before
// they become fewer and when somebody asks.
func (s *Space) notePeak() {
	n := s.pages()
	for {
		old := s.hwm.Load()
		if n <= old || s.hwm.CompareAndSwap(old, n) {
			return
		}
	}
}

// AppendFlags writes the mapping's VmFlags of smaps.
func (m *MapInfo) AppendFlags(b []byte) []byte {
	v := vma{prot: m.Prot, flags: m.flags}
	for _, f := range [...]struct {
		on   bool
		name string
	}{
		{m.Prot&linux.PROT_READ != 0, "rd "}, {m.Prot&linux.PROT_WRITE != 0, "wr "}, {m.Prot&linux.PROT_EXEC != 0, "ex "},
		{m.Shared, "sh "}, {true, "mr "}, {m.flags&vMayWrite != 0, "mw "}, {m.flags&vNoExec == 0, "me "}, {m.Shared, "ms "},
		{m.GrowsDown, "gd "}, {m.Locked, "lo "}, {m.flags&vDontFork != 0, "dc "}, {m.flags&vNoReserve != 0, "nr "},
		{m.flags&vWipe != 0, "wf "}, {v.committed(), "ac "}, {true, "sd "},
	} {
		if f.on {
			b = append(b, f.name...)
		}
	}
	return b
}
