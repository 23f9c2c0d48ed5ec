package procfs

import (
	"fmt"

	"hardtack/abi/linux"
	"hardtack/kernel/base/creds"
	"hardtack/kernel/base/hook"
)

// Resource is a range of physical memory, what it is, and the ranges in it.
type Resource struct {
	Start, End uint64 // End is behind it
	Name       string
	Parts      []Resource
}

// Memory tells of physical memory, in order.
var Memory = hook.Default(func() []Resource { return nil })

// iomem is /proc/iomem, where only an administrator sees addresses.
func iomem(x *about) ([]byte, linux.Errno) {
	return resources(nil, Memory.Call(), 0, x.c.Cred().Has(creds.CapSysAdmin)), 0
}

func resources(b []byte, list []Resource, depth int, shown bool) []byte {
	for _, r := range list {
		if r.End <= r.Start {
			continue
		}
		first, last := r.Start, r.End-1
		if !shown {
			first, last = 0, 0
		}
		b = fmt.Appendf(b, "%*s%08x-%08x : %s\n", 2*depth, "", first, last, r.Name)
		b = resources(b, r.Parts, depth+1, shown)
	}
	return b
}
