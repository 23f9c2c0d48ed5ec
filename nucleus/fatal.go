package nucleus

import (
	"math/bits"

	"hardtack/abi/boot"
	"hardtack/arch/amd64"
)

// exitPort is QEMU's isa-debug-exit device: a status written there ends the
// virtual machine.
const (
	exitPort  = 0xf4
	exitPanic = 0x7f
)

// exit ends the machine on behalf of the Go runtime's exit call. Status 0 is an
// orderly end; anything else is a panic, whose text the runtime has printed.
func exit(c *amd64.CPU, status int) {
	if cluster.index > 0 {
		endCluster(boot.ClusterPanicked, uint32(status))
	}
	if status != 0 {
		lastWords()
		amd64.Out32(exitPort, exitPanic)
	} else {
		amd64.Out32(exitPort, 0)
	}
	halt("the machine could not be turned off")
}

// Exit ends the machine through the debug exit device with a status below 127.
// It returns where there is no such device.
// In a further cluster it ends that.
func Exit(status int) {
	if cluster.index > 0 {
		amd64.CLI()
		endCluster(boot.ClusterExited, uint32(status))
	}
	amd64.Out32(exitPort, uint32(min(status, exitPanic-1)))
}

// LastWords, if set, tells what the kernel did before it panicked: put is to be called with
// lines of text. It may not allocate, block or take locks.
var LastWords func(put func(string), hex func(uint64))

// putShort prints a number in hexadecimal digits, as few as it has.
func putShort(v uint64) {
	for i := (bits.Len64(v|1) - 1) &^ 3; i >= 0; i -= 4 {
		putc("0123456789abcdef"[v>>uint(i)&15])
	}
}

// lastWords prints them, once.
func lastWords() {
	if f := LastWords; f != nil {
		LastWords = nil
		f(puts, putShort)
	}
}

// Hang keeps the processor from ever doing anything else, as a loop with interrupts off
// would. It is there for tests.
func Hang() {
	for {
		amd64.CLI()
		amd64.Pause()
	}
}

// fatal ends the machine because of a bug inside the nucleus.
func fatal(c *amd64.CPU, why string) {
	puts("\nkernel panic: ")
	puts(why)
	puts("\n")
	halt("")
}

func fatalTrap(c *amd64.CPU, vector, code, pc, sp uint64) {
	puts("\nkernel panic: exception ")
	puthex(vector)
	puts(" error ")
	puthex(code)
	puts("\n  pc ")
	puthex(pc)
	puts(" sp ")
	puthex(sp)
	puts(" cr2 ")
	puthex(amd64.ReadCR2())
	puts("\n")
	halt("")
}

// serveFatal is amd64.FatalHandler.
func serveFatal(c *amd64.CPU, frame *[7]uint64) {
	puts("\nkernel panic: exception inside the nucleus")
	fatalTrap(c, frame[0], frame[1], frame[2], frame[5])
}

// halt ends the machine as a panic does; without the debug exit device it stands still.
func halt(why string) {
	if why != "" {
		puts("kernel: ")
		puts(why)
		puts("\n")
	}
	if cluster.index > 0 {
		endCluster(boot.ClusterPanicked, exitPanic)
	}
	lastWords()
	amd64.Out32(exitPort, exitPanic)
	for {
		amd64.CLI()
		amd64.Pause()
	}
}
