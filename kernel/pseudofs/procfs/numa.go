package procfs

import (
	"fmt"
	"strconv"
	"strings"

	"hardtack/abi/linux"
	"hardtack/kernel/base/creds"
	"hardtack/kernel/base/mem"
	"hardtack/kernel/fs/vfs"
	"hardtack/kernel/mm/vm"
	"hardtack/kernel/process/proc"
)

// policies are the names of set_mempolicy's modes; the one node is all there is to name.
var policies = [...]string{"default", "prefer:0", "bind:0", "interleave:0", "local", "prefer (many):0"}

func (x *about) policy() string {
	mode := x.thread().Sched().MemPolicy & 0xff
	if int(mode) >= len(policies) {
		return policies[0]
	}
	return policies[mode]
}

// appendNuma writes a line of numa_maps.
func appendNuma(b []byte, s *vm.Space, m *vm.MapInfo, policy string, root vfs.Path) []byte {
	b = append(append(appendHex(b, m.Start, 8), ' '), policy...)
	switch {
	case m.File != nil && !m.File.Path.Zero():
		name := m.File.Path.Text(root)
		b = append(append(b, " file="...), escapeMount(name)...)
	case m.Name == "[heap]":
		b = append(b, " heap"...)
	case strings.HasPrefix(m.Name, "[stack"):
		b = append(b, " stack"...)
	}
	r := s.Residency(m.Start, m.End)
	pages, anon, dirty := r.RSS/mem.PageSize, r.Anonymous/mem.PageSize, (r.PrivateDirty+r.SharedDirty)/mem.PageSize
	put := func(name string, n uint64) {
		b = strconv.AppendUint(append(append(b, ' '), name...), n, 10)
	}
	if pages != 0 {
		if anon != 0 {
			put("anon=", anon)
		}
		if dirty != 0 {
			put("dirty=", dirty)
		}
		if pages != anon && pages != dirty {
			put("mapped=", pages)
		}
		put("N0=", pages)
		b = append(b, " kernelpagesize_kB=4"...)
	}
	return append(b, '\n')
}

// writeClearRefs forgets which pages were used, or the greatest resident size. Nothing
// tells which pages are soft-dirty.
func writeClearRefs(x *about, b []byte) linux.Errno {
	const softDirty, peak = 4, 5
	n, e := parseInt([]byte(strings.TrimSpace(cstring(b[:min(len(b), 12)]))), 10, 32)
	switch {
	case e != 0:
		return e
	case n < 1 || n > peak || n == softDirty:
		return linux.EINVAL
	}
	s := x.space()
	if s == nil {
		return 0
	}
	defer s.EndLook()
	if n == peak {
		s.ResetPeak()
	} else {
		s.ClearReferenced(int(n) - 1 + vm.AllPages)
	}
	return 0
}

// mapFilesDir is /proc/PID/map_files: links to the files that are mapped.
var mapFilesDir = &entry{name: "map_files", mode: 0o500, own: true}

// mapped returns the file mapped at exactly start … end, with a reference.
func (x *about) mapped(start, end uint64) (f *vfs.File, e linux.Errno) {
	s, _, e := x.process().InspectSpace(x.t, x.c, proc.FSCreds)
	if e != 0 {
		return nil, linux.EACCES
	}
	if s == nil {
		return nil, linux.ENOENT
	}
	defer s.EndLook()
	s.MapsFrom(start, func(m vm.MapInfo) bool {
		if m.Start == start && m.End == end && m.File != nil && !m.File.Path.Zero() {
			f = m.File
			f.Get()
		}
		return false
	})
	if f == nil {
		return nil, linux.ENOENT
	}
	return f, 0
}

func mapFileEntry(x *about, start, end uint64, mode uint32) *entry {
	path := func(x *about) (vfs.Path, linux.Errno) {
		f, e := x.mapped(start, end)
		if e != 0 {
			return vfs.Path{}, e
		}
		defer f.Put()
		return f.Path, 0
	}
	return &entry{mode: mode, link: linkOf(path), jump: func(x *about) (vfs.Path, linux.Errno) {
		if c := x.c.Cred(); !c.Has(creds.CapSysAdmin) && !c.Has(creds.CapCheckpointRestore) {
			return vfs.Path{}, linux.EPERM
		}
		return path(x)
	}}
}

func mapFileMode(f *vfs.File) uint32 {
	mode := uint32(0)
	if f.Readable() {
		mode |= 0o400
	}
	if f.Writable() {
		mode |= 0o200
	}
	return mode
}

func findMapFile(x *about, name string) (*entry, *about) {
	var start, end uint64
	if n, err := fmt.Sscanf(name, "%x-%x", &start, &end); n != 2 || err != nil || name != fmt.Sprintf("%x-%x", start, end) {
		return nil, nil
	}
	f, e := x.mapped(start, end)
	if e != 0 && e != linux.EACCES { // whatever is to be done with it says so
		return nil, nil
	}
	mode := uint32(0)
	if f != nil {
		mode = mapFileMode(f)
		f.Put()
	}
	y := *x
	return mapFileEntry(x, start, end, mode), &y
}

func listMapFiles(x *about, emit func(string, *entry, *about) bool) {
	s, _, e := x.process().InspectSpace(x.t, x.c, proc.FSCreds)
	if e != 0 || s == nil {
		return
	}
	defer s.EndLook()
	s.Maps(func(m vm.MapInfo) bool {
		if m.File == nil || m.File.Path.Zero() {
			return true
		}
		return emit(fmt.Sprintf("%x-%x", m.Start, m.End), mapFileEntry(x, m.Start, m.End, mapFileMode(m.File)), nil)
	})
}
