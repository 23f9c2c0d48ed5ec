package machine

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"hardtack/tool/rootfs"
)

// probeTime is how long a machine may take to show that it runs: a real one
// needs a tenth of a second, one that is emulated behind /dev/kvm minutes.
const probeTime = 4 * time.Second

// probeValue is what the probe's guest writes to the debug port.
const probeValue = 0x2a

// probeCode goes from 32-bit mode to 64-bit mode with paging, which is where
// hosts that only half offer KVM fail, uses a vector register, which their
// emulators do not know, counts to 32 M in memory, which shows
// whether instructions run at speed, and writes probeValue to the port.
// Addresses are those of the image: base 0x100000, tables at 0x102000 (PML4),
// 0x103000 (PDPT) and 0x104000 (PD, one 2 MiB page).
var probeCode = []byte{
	0xc7, 0x05, 0x00, 0x20, 0x10, 0x00, 0x03, 0x30, 0x10, 0x00, // movl $0x103003, 0x102000
	0xc7, 0x05, 0x00, 0x30, 0x10, 0x00, 0x03, 0x40, 0x10, 0x00, // movl $0x104003, 0x103000
	0xc7, 0x05, 0x00, 0x40, 0x10, 0x00, 0x83, 0x00, 0x00, 0x00, // movl $0x83, 0x104000
	0xb8, 0x00, 0x20, 0x10, 0x00, // mov $0x102000, %eax
	0x0f, 0x22, 0xd8, // mov %eax, %cr3
	0x0f, 0x20, 0xe0, // mov %cr4, %eax
	0x0d, 0x20, 0x02, 0x00, 0x00, // or $0x220 (PAE, OSFXSR), %eax
	0x0f, 0x22, 0xe0, // mov %eax, %cr4
	0xb9, 0x80, 0x00, 0x00, 0xc0, // mov $0xc0000080 (EFER), %ecx
	0x0f, 0x32, // rdmsr
	0x0d, 0x00, 0x01, 0x00, 0x00, // or $0x100 (LME), %eax
	0x0f, 0x30, // wrmsr
	0x0f, 0x20, 0xc0, // mov %cr0, %eax
	0x0d, 0x01, 0x00, 0x00, 0x80, // or $0x80000001 (PG, PE), %eax
	0x0f, 0x22, 0xc0, // mov %eax, %cr0
	0x0f, 0x01, 0x15, 0x90, 0x00, 0x10, 0x00, // lgdt 0x100090
	0xea, 0x58, 0x00, 0x10, 0x00, 0x08, 0x00, // ljmp $8, $0x100058
	0x45, 0x0f, 0x57, 0xff, // 64-bit: xorps %xmm15, %xmm15
	0xb9, 0x00, 0x00, 0x00, 0x02, // mov $32<<20, %ecx
	0x48, 0xff, 0x04, 0x25, 0x00, 0x60, 0x10, 0x00, // incq 0x106000
	0xff, 0xc9, // dec %ecx
	0x75, 0xf4, // jnz back to incq
	0xba, 0xf4, 0x00, 0x00, 0x00, // mov $0xf4, %edx
	0xb0, probeValue, // mov $probeValue, %al
	0xee,       // out %al, (%dx)
	0xf4,       // hlt
	0xeb, 0xfd, // jmp back to hlt
}

// probeImage is the code with its descriptor table: a null entry and a 64-bit
// code segment at 0x80, the table's register value at 0x90.
func probeImage() []byte {
	code := make([]byte, 0x96)
	copy(code, probeCode)
	copy(code[0x88:], []byte{0xff, 0xff, 0x00, 0x00, 0x00, 0x9a, 0xaf, 0x00})
	copy(code[0x90:], []byte{0x0f, 0x00, 0x80, 0x00, 0x10, 0x00})
	return TinyKernel(code)
}

// ResolveAccel turns Auto into KVM or TCG. That /dev/kvm exists proves
// nothing, so a guest of a few instructions is booted; the answer holds until
// the host boots again and is kept in the user's cache.
func ResolveAccel(ctx context.Context, accel string) string {
	if accel != Auto {
		return accel
	}
	if f, err := os.OpenFile("/dev/kvm", os.O_RDWR, 0); err != nil {
		return TCG
	} else {
		f.Close()
	}
	cache, boot := verdictFile(), bootID()
	if text, err := os.ReadFile(cache); err == nil && boot != "" {
		if id, verdict, _ := strings.Cut(strings.TrimSpace(string(text)), " "); id == boot && (verdict == KVM || verdict == TCG) {
			return verdict
		}
	}
	verdict := TCG
	if Probe(ctx, KVM) {
		verdict = KVM
	}
	if cache != "" && boot != "" && ctx.Err() == nil {
		// A cache that cannot be written costs the next run a probe.
		if os.MkdirAll(filepath.Dir(cache), 0o700) == nil {
			_ = os.WriteFile(cache, []byte(boot+" "+verdict+"\n"), 0o600)
		}
	}
	return verdict
}

func verdictFile() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "hardtack", "accel-2") // the number is the probe's
}

func bootID() string {
	text, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// Probe says whether an accelerator really runs a guest.
func Probe(ctx context.Context, accel string) bool {
	qemu, err := QEMU()
	if err != nil {
		return false
	}
	f, err := rootfs.Scratch()
	if err != nil {
		return false
	}
	defer f.Close()
	if _, err := f.Write(probeImage()); err != nil {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, qemu, "-M", MicroVM, "-accel", accel, "-cpu", "max", "-m", "64M",
		"-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
		"-device", "isa-debug-exit,iobase=0xf4,iosize=0x04", "-kernel", devFD(3))
	cmd.ExtraFiles = []*os.File{f}
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	var out bytes.Buffer
	cmd.Stderr = &out
	var exit *exec.ExitError
	return errors.As(cmd.Run(), &exit) && exit.ExitCode() == probeValue<<1|1
}
