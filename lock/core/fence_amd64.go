package core

// Fence orders all accesses to memory before it with all after it, also for a device
// that runs beside this processor.
//
// MFENCE does that on a processor, as XCHG does. QEMU's emulation of a machine with one
// processor leaves both out: it takes nothing to run beside that processor, though its
// devices do. RDTSC is what reaches them. QEMU takes a lock to read the counter, and that
// is an atomic operation of the host. It does not when it counts instructions (-icount),
// and then nothing cheap is a fence.
func Fence()
