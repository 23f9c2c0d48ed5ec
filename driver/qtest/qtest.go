// Package qtest is a driver.Platform over QEMU's own devices, without a kernel:
// a qemu process whose processor does nothing is told over the qtest protocol
// to access ports and registers, and its memory is shared with the test. It is
// slow (a few microseconds an access) and exact. Only tests import it; they are
// skipped where QEMU is not installed.
package qtest

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"hardtack/driver"
)

// RAM is how much memory a machine has.
const RAM = 64 << 20

// Machine is a running QEMU.
type Machine struct {
	tb  testing.TB
	mem []byte // all of its memory

	mu      sync.Mutex // one command at a time
	in      io.Writer
	replies chan string

	state  sync.Mutex
	next   uint64             // guarded by state; free DMA memory
	lines  map[uint32]*worker // guarded by state
	msi    []*message         // guarded by state
	bios   []byte             // guarded by state; copy of the firmware's segment
	closed chan struct{}
	ended  chan struct{}
}

// message is a word of memory that a device writes instead of the local APIC's.
type message struct {
	word []byte
	w    *worker
}

// worker calls a bottom half, once more if it was wanted meanwhile.
type worker struct{ want chan struct{} }

func (m *Machine) newWorker(f func()) *worker {
	w := &worker{make(chan struct{}, 1)}
	go func() {
		for {
			select {
			case <-w.want:
				f()
			case <-m.closed:
				return
			}
		}
	}()
	return w
}

func (w *worker) kick() {
	select {
	case w.want <- struct{}{}:
	default:
	}
}

// Command returns the QEMU command of a machine with shared memory in a file.
func Command(tb testing.TB, file, machine string, args ...string) *exec.Cmd {
	tb.Helper()
	qemu, err := exec.LookPath("qemu-system-x86_64")
	if err != nil {
		tb.Skip("qemu-system-x86_64 is not installed (Debian: qemu-system-x86)")
	}
	return exec.Command(qemu, append([]string{
		"-nodefaults", "-no-user-config", "-display", "none",
		"-machine", machine + ",memory-backend=ram", "-m", strconv.Itoa(RAM >> 20),
		"-object", fmt.Sprintf("memory-backend-file,id=ram,size=%d,share=on,mem-path=%s", RAM, file),
	}, args...)...)
}

// Map maps the memory file.
func Map(tb testing.TB, file string) []byte {
	tb.Helper()
	f, err := os.OpenFile(file, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	if err := f.Truncate(RAM); err != nil {
		tb.Fatal(err)
	}
	b, err := syscall.Mmap(int(f.Fd()), 0, RAM, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

// Start runs a machine until the test ends. irqs names the interrupt controller
// whose inputs are watched, base is its first global interrupt. Its processor
// runs (devices stop with it) and halts at once, for ever.
func Start(tb testing.TB, machine, irqs string, base uint32, args ...string) *Machine {
	tb.Helper()
	firmware := make([]byte, 64<<10)
	copy(firmware[len(firmware)-16:], "\xfa\xf4\xeb\xfd") // CLI; HLT; JMP to HLT
	bios := filepath.Join(tb.TempDir(), "bios")
	if err := os.WriteFile(bios, firmware, 0o600); err != nil {
		tb.Fatal(err)
	}
	return StartFirmware(tb, machine, irqs, base, append([]string{"-bios", bios}, args...)...)
}

// StartFirmware is Start with a processor that runs the machine's firmware.
func StartFirmware(tb testing.TB, machine, irqs string, base uint32, args ...string) *Machine {
	tb.Helper()
	file := filepath.Join(tb.TempDir(), "ram")
	m := &Machine{
		tb: tb, mem: Map(tb, file), replies: make(chan string, 1),
		next: 16 << 20, lines: map[uint32]*worker{}, closed: make(chan struct{}), ended: make(chan struct{}),
	}
	cmd := Command(tb, file, machine, append([]string{"-accel", "tcg", "-qtest", "stdio", "-qtest-log", "none"}, args...)...)
	in, err := cmd.StdinPipe()
	if err != nil {
		tb.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	var stderr strings.Builder
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	m.in = in
	go m.read(out, base)
	go func() {
		_ = cmd.Wait()
		close(m.ended)
	}()
	tb.Cleanup(func() {
		close(m.closed)
		_ = cmd.Process.Kill()
		<-m.ended
		if tb.Failed() && stderr.Len() > 0 {
			tb.Log(stderr.String())
		}
	})
	if irqs != "" {
		m.command("irq_intercept_in " + irqs)
	}
	go m.pollMessages()
	return m
}

func (m *Machine) read(out io.Reader, base uint32) {
	defer close(m.replies)
	for s := bufio.NewScanner(out); s.Scan(); {
		var n uint32
		line := s.Text()
		if _, err := fmt.Sscanf(line, "IRQ raise %d", &n); err == nil {
			m.state.Lock()
			w := m.lines[base+n]
			m.state.Unlock()
			if w != nil {
				w.kick()
			}
			continue
		}
		if strings.HasPrefix(line, "IRQ") {
			continue
		}
		m.replies <- line
	}
}

func (m *Machine) command(c string) uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	select {
	case <-m.closed:
		return 0
	default:
	}
	if _, err := io.WriteString(m.in, c+"\n"); err != nil {
		return ^uint64(0)
	}
	reply, ok := <-m.replies
	if !ok {
		return ^uint64(0) // QEMU ended
	}
	f := strings.Fields(reply)
	if len(f) == 0 || f[0] != "OK" {
		panic(fmt.Sprintf("qtest: %q: %q", c, reply))
	}
	if len(f) < 2 {
		return 0
	}
	v, _ := strconv.ParseUint(f[1], 0, 64)
	return v
}

func (m *Machine) pollMessages() {
	for {
		select {
		case <-m.closed:
			return
		case <-time.After(200 * time.Microsecond):
		}
		m.state.Lock()
		for _, x := range m.msi {
			if x.word[0] != 0 {
				x.word[0] = 0
				x.w.kick()
			}
		}
		m.state.Unlock()
	}
}

// Ended is closed when QEMU has ended.
func (m *Machine) Ended() <-chan struct{} { return m.ended }

// MapDevice implements driver.Platform.
func (m *Machine) MapDevice(phys, size uint64) driver.MMIO { return window{m, phys, size} }

// The firmware's segment is not always part of the memory file.
const biosStart, biosEnd = 0xe0000, 0x100000

// PhysWindow implements driver.Platform. In the firmware's segment it returns a
// copy.
func (m *Machine) PhysWindow(phys, n uint64) []byte {
	if phys < biosStart || phys+n > biosEnd {
		return Window(m.mem, phys, n)
	}
	m.state.Lock()
	defer m.state.Unlock()
	if m.bios == nil {
		m.bios = make([]byte, biosEnd-biosStart)
		for i := 0; i < len(m.bios); i += 8 {
			binary.LittleEndian.PutUint64(m.bios[i:], m.command(fmt.Sprintf("readq %#x", biosStart+i)))
		}
	}
	return Window(m.bios, phys-biosStart, n)
}

// ForgetFirmware makes PhysWindow look at the firmware's segment again.
func (m *Machine) ForgetFirmware() {
	m.state.Lock()
	m.bios = nil
	m.state.Unlock()
}

// Window returns a part of a machine's memory, nil beyond it.
func Window(mem []byte, phys, n uint64) []byte {
	if phys > uint64(len(mem)) || uint64(len(mem))-phys < n {
		return nil
	}
	return mem[phys : phys+n : phys+n]
}

// In8 implements driver.Platform.
func (m *Machine) In8(port uint16) uint8 { return uint8(m.command(fmt.Sprintf("inb %#x", port))) }

// In16 implements driver.Platform.
func (m *Machine) In16(port uint16) uint16 { return uint16(m.command(fmt.Sprintf("inw %#x", port))) }

// In32 implements driver.Platform.
func (m *Machine) In32(port uint16) uint32 { return uint32(m.command(fmt.Sprintf("inl %#x", port))) }

// Out8 implements driver.Platform.
func (m *Machine) Out8(port uint16, v uint8) { m.command(fmt.Sprintf("outb %#x %#x", port, v)) }

// Out16 implements driver.Platform.
func (m *Machine) Out16(port uint16, v uint16) { m.command(fmt.Sprintf("outw %#x %#x", port, v)) }

// Out32 implements driver.Platform.
func (m *Machine) Out32(port uint16, v uint32) { m.command(fmt.Sprintf("outl %#x %#x", port, v)) }

// AllocDMA implements driver.Platform.
func (m *Machine) AllocDMA(pages int) (driver.DMA, bool) {
	m.state.Lock()
	defer m.state.Unlock()
	n := uint64(pages) * driver.PageSize
	b := m.PhysWindow(m.next, n)
	if b == nil {
		return driver.DMA{}, false
	}
	d := driver.DMA{Virt: b, Phys: m.next}
	m.next += n
	return d, true
}

// Interrupt implements driver.Platform.
func (m *Machine) Interrupt(gsi uint32, _, _ bool, bottomHalf func()) error {
	m.state.Lock()
	defer m.state.Unlock()
	if m.lines[gsi] != nil {
		return errors.New("interrupt is taken")
	}
	m.lines[gsi] = m.newWorker(bottomHalf)
	return nil
}

// MSI implements driver.Platform.
func (m *Machine) MSI(_ int, bottomHalf func()) (addr uint64, data uint32, err error) {
	d, ok := m.AllocDMA(1)
	if !ok {
		return 0, 0, errors.New("no memory")
	}
	m.state.Lock()
	defer m.state.Unlock()
	m.msi = append(m.msi, &message{d.Virt, m.newWorker(bottomHalf)})
	return d.Phys, 1, nil
}

type window struct {
	m          *Machine
	phys, size uint64
}

func (w window) at(off, n uint64) uint64 {
	if off > w.size || w.size-off < n {
		panic("access beyond the device's registers")
	}
	return w.phys + off
}

func (w window) read(op string, off, n uint64) uint64 {
	return w.m.command(fmt.Sprintf("%s %#x", op, w.at(off, n)))
}

func (w window) write(op string, off, n, v uint64) {
	w.m.command(fmt.Sprintf("%s %#x %#x", op, w.at(off, n), v))
}

func (w window) Read8(off uint64) uint8       { return uint8(w.read("readb", off, 1)) }
func (w window) Read16(off uint64) uint16     { return uint16(w.read("readw", off, 2)) }
func (w window) Read32(off uint64) uint32     { return uint32(w.read("readl", off, 4)) }
func (w window) Read64(off uint64) uint64     { return w.read("readq", off, 8) }
func (w window) Write8(off uint64, v uint8)   { w.write("writeb", off, 1, uint64(v)) }
func (w window) Write16(off uint64, v uint16) { w.write("writew", off, 2, uint64(v)) }
func (w window) Write32(off uint64, v uint32) { w.write("writel", off, 4, uint64(v)) }
func (w window) Write64(off uint64, v uint64) { w.write("writeq", off, 8, v) }
