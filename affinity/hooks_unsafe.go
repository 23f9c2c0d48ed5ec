package affinity

import "unsafe"

// runtimeChannel and runtimeEvent have the layout of the runtime's affChannel
// and affEvent (overlay/_runtime/affinity.go).
type runtimeChannel struct {
	Addr, Site               uintptr
	Cap, Elem                uint64
	Touches, Cross, Contends uint64
	Group, Together          uint32
}

type runtimeEvent struct {
	when        int64
	kind, group uint32
	a, b        uint64
}

// hooks is filled by the linker. The patched runtime defines a variable of this
// very name (affHooks there) that has a value; between a definition with a
// value and one without, the linker keeps the first. In a build without the
// overlay this one stays, and all is nil.
//
//go:linkname hooks hardtack/affinity.hooks
var hooks struct {
	settings    func() (policy uint32, period, touches int64)
	setSettings func(policy uint32, period, touches int64)
	totals      func() (touches, cross, contended, decisions uint64)
	channels    func(buf []runtimeChannel) int
	events      func(from uint64, buf []runtimeEvent) (n int, next uint64)
	count       func(c unsafe.Pointer) (touches, cross uint32, site uintptr)
	state       func() (pinned bool, groups uint32, yes, voters uint32)
}
