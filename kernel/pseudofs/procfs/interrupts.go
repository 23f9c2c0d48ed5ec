package procfs

import (
	"fmt"
	"math/bits"

	"hardtack/kernel/base/hook"
	"hardtack/kernel/process/proc"
)

// IRQ is an interrupt line: how often it came, and whose it is.
type IRQ struct {
	Count uint64
	Name  string
}

// IRQs and CPUInterrupts tell of the machine's interrupts: the lines of devices, and
// all that a CPU took.
var (
	IRQs          = hook.Default(func() []IRQ { return nil })
	CPUInterrupts = hook.Default(func(cpu int) uint64 { return 0 })
)

// interrupts is /proc/interrupts. Lines of devices all go to the first CPU; what is
// left of a CPU's are its timer's and those that CPUs send each other.
func interrupts() string {
	n, _ := proc.CPUs.Call()
	b := []byte("           ")
	for i := range n {
		if proc.Online(i) {
			b = fmt.Appendf(b, "CPU%-8d", i)
		}
	}
	b = append(b, '\n')
	devices := uint64(0)
	for i, irq := range IRQs.Call() {
		devices += irq.Count
		b = fmt.Appendf(b, "%3d: %10d ", i, irq.Count)
		for range bits.OnesCount64(proc.OnlineCPUs()) - 1 {
			b = fmt.Appendf(b, "%10d ", 0)
		}
		b = fmt.Appendf(b, "  APIC  %s\n", irq.Name)
	}
	b = append(b, "LOC: "...)
	for i := range n {
		if !proc.Online(i) {
			continue
		}
		c := CPUInterrupts.Call(i)
		if i == 0 {
			c -= min(c, devices)
		}
		b = fmt.Appendf(b, "%10d ", c)
	}
	return string(append(b, "  Local timer interrupts\n"...))
}
