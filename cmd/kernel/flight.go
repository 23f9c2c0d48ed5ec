package main

import (
	"hardtack/kernel/base/flight"
	"hardtack/kernel/process/proc"
	"hardtack/nucleus"
)

// record begins to write down what the kernel does, and lets the nucleus print the last of it
// when the kernel panics. The lines are what tool/watch reads (Panic).
func (k *kernel) record() {
	flight.Start(nucleus.NumCPU())
	nucleus.NoteBottomHalf = func(i int) { flight.Note(flight.Interrupt, uint32(i), 0, proc.Ticks(), 0) }
	nucleus.LastWords = func(put func(string), hex func(uint64)) {
		put("\n<flight recorder>\n")
		put("now ")
		hex(uint64(proc.Ticks()))
		put(" ")
		hz, _ := nucleus.TSCFrequency()
		hex(hz)
		put("\n")
		flight.LastWords(func(kind byte, lane int, a, b, c uint64) {
			if kind == 'r' {
				put("r ")
			} else {
				put("c ")
			}
			for _, v := range [...]uint64{uint64(lane), a, b} {
				hex(v)
				put(" ")
			}
			hex(c)
			put("\n")
		})
		put("</flight recorder>\n")
	}
}
