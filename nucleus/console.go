package nucleus

import "hardtack/arch/amd64"

// The first serial port, polled: for the runtime's own output (a panic's
// stacks) and before drivers run.
const com1 = 0x3f8

func initConsole() {
	if cluster.index > 0 {
		return // it is the first cluster's
	}
	amd64.Out8(com1+1, 0)    // no interrupts
	amd64.Out8(com1+3, 0x80) // divisor latch
	amd64.Out8(com1, 1)      // 115200
	amd64.Out8(com1+1, 0)
	amd64.Out8(com1+3, 3) // 8n1
	amd64.Out8(com1+2, 7) // FIFO
	amd64.Out8(com1+4, 0xb)
}

func putc(b byte) {
	if cluster.index > 0 {
		logByte(b)
		return
	}
	if b == '\n' {
		putc('\r')
	}
	for i := 0; i < 1<<16 && amd64.In8(com1+5)&0x20 == 0; i++ {
		amd64.Pause()
	}
	amd64.Out8(com1, b)
}

func puts(s string) {
	for i := range len(s) {
		putc(s[i])
	}
}

func puthex(v uint64) {
	puts("0x")
	for i := 60; i >= 0; i -= 4 {
		putc("0123456789abcdef"[v>>uint(i)&15])
	}
}
