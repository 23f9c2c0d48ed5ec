// Package machine runs a kernel in QEMU and connects it to the host: the
// console to a reader and a writer, the control channel to the session's
// decisions.
//
// A machine has no named files on the host: its initrd is an unnamed file, its console and
// channels are socket pairs, and QEMU dies with the process that started it. So this package
// leaves nothing behind, however a run ends; package named has the files of a machine's name.
package machine

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"

	"hardtack/live"
	"hardtack/tool/fault"
)

// The machines and accelerators there are.
const (
	MicroVM = "microvm"
	Q35     = "q35"

	Auto = "auto"
	KVM  = "kvm"
	TCG  = "tcg"
)

// MaxCPUs is how many processors the kernel runs on.
const MaxCPUs = 64

// MinMemory is less than any guest can start with.
const MinMemory = 32 << 20

// PanicCode is what a panicking kernel writes to the debug port.
const PanicCode = 0x7f

// Config is a machine to start.
type Config struct {
	Kernel   string // the PVH ELF
	Append   string // its command line
	CPUs     int
	Memory   int64 // bytes
	Machine  string
	Accel    string // KVM or TCG; Auto must be resolved before
	ICount   bool
	NoNet    bool
	NIC      string  // virtio (the default), e1000e or e1000
	Net      Network // what the card is connected to; the zero value is the user network
	MTU      int     // of the card; 0: what it has by itself
	Pcap     string  // a file for the packets that pass the card; empty for none
	Netdev   string  // the card's backend as QEMU takes it, without an id; empty for the user network
	Publish  []Forward
	Disks    []Disk
	Root     bool // the first disk was given as --root, for what is said of it
	Folders  []Folder
	QEMUArgs []string
	Clusters bool // there are several kernels
	Kernels  []Cluster

	Keep    bool      // the RAM is a file, so that the machine can be saved while it runs
	From    *Snapshot // the machine is a copy; nil: it boots
	Renewal Renewal   // with From

	LastWords func(text []byte) // gets what the flight recorder of a kernel that panics prints; nil: the console does

	Watch func(*Running) // called when the machine has started; may be nil
}

// Forward is a port of the host that leads to one of the guest.
type Forward struct {
	Proto string // tcp or udp
	Addr  string // IPv4 of the host
	Host  int
	Guest int

	Cluster int // of the guest's kernels
}

// ParseForward reads [ADDR:]HOST:GUEST[/udp][@CLUSTER].
func ParseForward(s string) (Forward, error) {
	f := Forward{Proto: "tcp", Addr: "127.0.0.1"}
	words, cluster, ok := strings.Cut(s, "@")
	if n, err := strconv.ParseUint(cluster, 10, 8); ok && err == nil {
		f.Cluster = int(n)
	} else if ok {
		return f, fault.Bad("publish %q: %q is not the number of a cluster", s, cluster)
	}
	rest, proto, ok := strings.Cut(words, "/")
	if ok {
		if proto != "tcp" && proto != "udp" {
			return f, fault.Bad("publish %q: the protocol is tcp or udp", s)
		}
		f.Proto = proto
	}
	parts := strings.Split(rest, ":")
	if len(parts) == 3 {
		ip := net.ParseIP(parts[0])
		if ip = ip.To4(); ip == nil {
			return f, fault.Bad("publish %q: %q is not an IPv4 address", s, parts[0])
		}
		f.Addr, parts = ip.String(), parts[1:]
	}
	if len(parts) != 2 {
		return f, fault.Bad("publish %q: want [ADDR:]HOST:GUEST[/udp][@CLUSTER]", s)
	}
	var err error
	if f.Host, err = parsePort(parts[0]); err == nil {
		f.Guest, err = parsePort(parts[1])
	}
	if err != nil {
		return f, fault.Bad("publish %q: %v", s, err)
	}
	return f, nil
}

func parsePort(s string) (int, error) {
	n, err := strconv.ParseUint(s, 10, 16)
	if err != nil || n == 0 {
		return 0, fmt.Errorf("%q is not a port", s)
	}
	return int(n), nil
}

// Free says whether the host's port can be had.
func (f Forward) Free() error {
	at := net.JoinHostPort(f.Addr, strconv.Itoa(f.Host))
	var err error
	if f.Proto == "udp" {
		var c net.PacketConn
		if c, err = net.ListenPacket("udp4", at); err == nil {
			c.Close()
		}
	} else {
		var l net.Listener
		if l, err = net.Listen("tcp4", at); err == nil {
			l.Close()
		}
	}
	if err != nil {
		return fault.Bad("port %s cannot be used: %v", at, rootCause(err))
	}
	return nil
}

// rootCause is the innermost error: "address already in use" without the
// names of the calls around it.
func rootCause(err error) error {
	for {
		u, ok := err.(interface{ Unwrap() error })
		if !ok || u.Unwrap() == nil {
			return err
		}
		err = u.Unwrap()
	}
}

// ParseMemory reads a size of memory such as 512M, 2G or 131072K.
func ParseMemory(s string) (int64, error) { return ParseSize("memory", s, MinMemory) }

// ParseSize reads a size in bytes such as 512M, 2G or 131072K, for something that
// has a name and a least size.
func ParseSize(name, s string, least int64) (int64, error) {
	digits := strings.TrimRight(s, "KMGTkmgtiBb")
	unit := strings.TrimSuffix(strings.TrimSuffix(strings.ToUpper(s[len(digits):]), "B"), "I")
	shift, ok := map[string]int{"": 0, "K": 10, "M": 20, "G": 30, "T": 40}[unit]
	n, err := strconv.ParseInt(digits, 10, 64)
	if !ok || err != nil || n < 0 || n > 1<<50>>shift {
		return 0, fault.Bad("%s %q: want a size such as 512M or 2G", name, s)
	}
	if n <<= shift; n < least {
		return 0, fault.Bad("%s %q: the least is %dM", name, s, least>>20)
	}
	return n, nil
}

// Check refuses what QEMU or the guest could not do.
func (c *Config) Check() error {
	if c.CPUs < 1 || c.CPUs > MaxCPUs {
		return fault.Bad("--cpus %d: want 1 to %d", c.CPUs, MaxCPUs)
	}
	if c.Machine != MicroVM && c.Machine != Q35 {
		return fault.Bad("--machine %q: want %s or %s", c.Machine, MicroVM, Q35)
	}
	switch c.Accel {
	case Auto, KVM, TCG:
	default:
		return fault.Bad("--accel %q: want %s, %s or %s", c.Accel, Auto, KVM, TCG)
	}
	if c.ICount && c.Accel == KVM {
		return fault.Bad("--icount counts instructions, which --accel kvm does not")
	}
	seen := map[string]bool{}
	for _, f := range c.Publish {
		at := fmt.Sprintf("%s %s:%d", f.Proto, f.Addr, f.Host)
		if seen[at] {
			return fault.Bad("port %s:%d is published twice", f.Addr, f.Host)
		}
		seen[at] = true
	}
	if err := c.checkNet(); err != nil {
		return err
	}
	if err := c.checkClusters(); err != nil {
		return err
	}
	if err := c.checkFolders(); err != nil {
		return err
	}
	return c.checkDisks()
}

// QEMU is the emulator's path.
func QEMU() (string, error) {
	name, err := exec.LookPath("qemu-system-x86_64")
	if err != nil {
		return "", fault.With(fault.Host, "qemu-system-x86_64 is not installed; on Debian: apt-get install qemu-system-x86")
	}
	return name, nil
}

// Args are QEMU's arguments, given where it finds the initrd and which
// descriptors lead to the console, the control channel and, unless that is 0, the port
// by which the host looks in.
func (c *Config) Args(initrd string, console, control, look int) []string {
	bus := "device"
	if c.Machine == Q35 {
		bus = "pci"
	}
	args := []string{"-M", c.Machine}
	switch {
	case c.Accel == KVM:
		args = append(args, "-accel", "kvm", "-cpu", "host")
	case c.ICount:
		args = append(args, "-accel", "tcg,thread=single", "-cpu", tcgCPU, "-icount", "shift=0,sleep=off")
	default:
		args = append(args, "-accel", "tcg,thread=multi", "-cpu", tcgCPU)
	}
	args = append(args,
		"-smp", strconv.Itoa(c.CPUs),
		"-m", memory(c.Memory),
		"-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
		"-global", "virtio-mmio.force-legacy=false") // the kernel drives virtio 1 only
	if c.From == nil {
		args = append(args, "-kernel", c.Kernel, "-initrd", initrd)
		if c.Append != "" {
			args = append(args, "-append", c.Append)
		}
	}
	args = append(args,
		"-chardev", fmt.Sprintf("socket,id=console,fd=%d", console), "-serial", "chardev:console",
		"-chardev", fmt.Sprintf("socket,id=control,fd=%d", control),
		"-device", "virtio-serial-"+bus, "-device", "virtserialport,chardev=control,name=hardtack.control")
	if look > 0 {
		args = append(args, "-chardev", fmt.Sprintf("socket,id=live,fd=%d", look),
			"-device", "virtserialport,chardev=live,name="+live.Port)
	}
	args = append(args,
		"-device", "virtio-rng-"+bus,
		"-device", "isa-debug-exit,iobase=0xf4,iosize=0x04")
	args = append(args, c.netArgs(bus)...)
	args = append(args, c.diskArgs(bus)...)
	args = append(args, c.folderArgs(bus)...)
	args = append(args, c.clusterArgs(bus)...)
	return append(args, c.QEMUArgs...)
}

// tcgCPU is all that TCG emulates, without the string instructions that it
// claims to be fast and that are not.
const tcgCPU = "max,erms=off,fsrm=off"

// Quote makes a command line that a shell reads back as these words.
func Quote(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		if w == "" || strings.ContainsFunc(w, func(r rune) bool {
			return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=+,./:@%", r)
		}) {
			w = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
		quoted[i] = w
	}
	return strings.Join(quoted, " ")
}

// devFD is the path under which a child finds its descriptor.
func devFD(fd int) string { return "/dev/fd/" + strconv.Itoa(fd) }

// closeAll closes what a failing start had opened.
func closeAll(files ...*os.File) {
	for _, f := range files {
		if f != nil {
			f.Close()
		}
	}
}

// memory is a size as QEMU reads it.
func memory(size int64) string {
	if size%(1<<20) == 0 {
		return fmt.Sprintf("%dM", size>>20)
	}
	return fmt.Sprintf("%dK", size>>10)
}
