package nucleus

import (
	"sync/atomic"
	"unsafe"

	"hardtack/abi/boot"
	"hardtack/arch/amd64"
	"hardtack/nucleus/ipc"
)

// Accessors to memory by address. The addresses are physical ones in the
// direct map, or kernel addresses that the caller made sure are mapped.

func direct(pa uint64) uintptr { return uintptr(pa + boot.DirectBase) }

func pointer(va uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&va)) }

func load64(va uintptr) uint64     { return *(*uint64)(pointer(va)) }
func store64(va uintptr, v uint64) { *(*uint64)(pointer(va)) = v }
func load32(va uintptr) uint32     { return *(*uint32)(pointer(va)) }
func store32(va uintptr, v uint32) { *(*uint32)(pointer(va)) = v }
func load16(va uintptr) uint16     { return *(*uint16)(pointer(va)) }
func store16(va uintptr, v uint16) { *(*uint16)(pointer(va)) = v }
func load8(va uintptr) uint8       { return *(*uint8)(pointer(va)) }

// Where parts of a ClusterInfo are.
const (
	infoMap     = uint64(unsafe.Offsetof(boot.ClusterInfo{}.Map))
	infoArchive = uint64(unsafe.Offsetof(boot.ClusterInfo{}.Archive))
	infoCmdline = uint64(unsafe.Offsetof(boot.ClusterInfo{}.Cmdline))
)

func logAt(va uintptr) *byte { return (*byte)(pointer(va)) }

// mmio32 reads and writes a device register.
func mmioLoad32(va uintptr) uint32     { return atomic.LoadUint32((*uint32)(pointer(va))) }
func mmioStore32(va uintptr, v uint32) { *(*uint32)(pointer(va)) = v }

// table returns the page table at a physical address.
func table(pa uint64) *[512]uint64 { return (*[512]uint64)(pointer(direct(pa))) }

func zeroFrame(pa uint64) { clear(unsafe.Slice((*byte)(pointer(direct(pa))), pageSize)) }

// RAM returns n bytes of physical memory in the direct map.
func RAM(pa uint64, n int) []byte { return unsafe.Slice((*byte)(pointer(direct(pa))), n) }

// DirectMap returns where physical address 0 is mapped.
func DirectMap() unsafe.Pointer { return pointer(boot.DirectBase) }

// Counts returns where the reference count of frame 0 is, or would be: one 32-bit word
// a frame, of which the boot code set aside those of the kernel's memory.
func Counts() unsafe.Pointer { return pointer(frames.counts) }

// fromStart reads the structures that the loader left.
func startInfo(pa uint64) *boot.StartInfo { return (*boot.StartInfo)(pointer(direct(pa))) }
func memMapEntry(pa uint64, i int) *boot.MemMapEntry {
	return (*boot.MemMapEntry)(pointer(direct(pa) + uintptr(i)*24))
}
func module(pa uint64) *boot.Module { return (*boot.Module)(pointer(direct(pa))) }

// What a cluster is told fits in the page before its status.
const _ = uint(boot.ClusterStatus - unsafe.Sizeof(boot.ClusterInfo{}))

// clusterInfo and clusterState are the first pages of a further cluster's memory.
func clusterInfo(va uintptr) *boot.ClusterInfo   { return (*boot.ClusterInfo)(pointer(va)) }
func clusterState(va uintptr) *boot.ClusterState { return (*boot.ClusterState)(pointer(va)) }

// addrOf returns a variable's address; the variable must not move (globals).
func cpuPointer(c *amd64.CPU) *cpu { return (*cpu)(unsafe.Pointer(c)) }

func threadPointer(t *amd64.Thread) *thread { return (*thread)(unsafe.Pointer(t)) }

func stateAddr(u *amd64.UserState) uintptr { return uintptr(unsafe.Pointer(u)) }

func spaceAddr(as *AddressSpace) uintptr { return uintptr(unsafe.Pointer(as)) }

func userStateAt(a uintptr) *amd64.UserState { return (*amd64.UserState)(pointer(a)) }

// rendezvous does not move.
func endpointAddr(e *ipc.Endpoint) uintptr { return uintptr(unsafe.Pointer(e)) }
func endpointAt(a uintptr) *ipc.Endpoint   { return (*ipc.Endpoint)(pointer(a)) }

func frameAt(va uintptr) *sigFrame { return (*sigFrame)(pointer(va)) }

func idtPointer() unsafe.Pointer { return unsafe.Pointer(&idt) }

func counterAddr(v *atomic.Uint64) uintptr { return uintptr(unsafe.Pointer(v)) }

func contextOf(u *amd64.UserState) *UserContext { return (*UserContext)(unsafe.Pointer(u)) }

// spaceGen and loadedSpace read what another CPU has in CR3.
func spaceGen(cpu int) uint64 { return atomic.LoadUint64(&cpus[cpu].Gen) }

func loadedSpace(cpu int) uintptr { return atomic.LoadUintptr(&cpus[cpu].Space) }

func sliceStart(s []uint16) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(s))) }

func sliceAddr(s []uint32) uint64 { return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(s)))) }

func bytesAt(va uintptr, n int) []byte { return unsafe.Slice((*byte)(pointer(va)), n) }
