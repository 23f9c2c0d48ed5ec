package nucleus

// ServeInterrupts runs bottom halves whenever a CPU has nothing else to do. It
// does not return: give it a goroutine of its own.
func ServeInterrupts() {
	pollServerInit()
	pd, e := pollOpen(fdIRQ)
	if e != 0 {
		panic("nucleus: the runtime's poller refused the interrupt descriptor")
	}
	for {
		RunPending()
		pollReset(pd, 'r')
		if irqs.pending.Load() == 0 {
			pollWait(pd, 'r')
		}
	}
}
