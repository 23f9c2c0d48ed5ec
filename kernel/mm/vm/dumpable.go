package vm

// What PR_GET_DUMPABLE says of an address space: whether its user may look into
// it. It is the space's own, as those that share the memory share its secrets.
const (
	DumpNone int32 = 0 // only with CAP_SYS_PTRACE
	DumpUser int32 = 1
)

// Dumpable returns DumpNone or DumpUser.
func (s *Space) Dumpable() int32 { return s.dumpable.Load() }

// SetDumpable changes it.
func (s *Space) SetDumpable(v int32) { s.dumpable.Store(v) }
