package kern

import "sync/atomic"

// Setting is a number under /proc/sys that the kernel obeys.
type Setting struct{ value atomic.Int64 }

// Get returns the value in force.
func (s *Setting) Get() int64 { return s.value.Load() }

// Set replaces it.
func (s *Setting) Set(v int64) { s.value.Store(v) }

// The settings that keep users apart, with the defaults of Debian.
var (
	DmesgRestrict      Setting // kernel.dmesg_restrict
	ProtectedHardlinks Setting // fs.protected_hardlinks
	ProtectedSymlinks  Setting // fs.protected_symlinks
	ProtectedFifos     Setting // fs.protected_fifos
	ProtectedRegular   Setting // fs.protected_regular
	MountMax           Setting // fs.mount-max
)

func init() {
	DmesgRestrict.Set(1)
	ProtectedHardlinks.Set(1)
	ProtectedSymlinks.Set(1)
	ProtectedFifos.Set(1)
	ProtectedRegular.Set(2)
	MountMax.Set(100000)
}
