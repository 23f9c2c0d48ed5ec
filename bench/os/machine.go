package osbench

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// An OS is one of the two kernels.
type OS int

const (
	OnLinux OS = iota
	OnHardtack
)

func (o OS) String() string {
	if o == OnLinux {
		return "Linux"
	}
	return "Hardtack"
}

// Setup prepares a measurement of a list of systems, as in "linux,hardtack", and returns
// QEMU's version.
func Setup(systems string, log func(format string, args ...any)) (b Bench, qemu string, err error) {
	b.Log = log
	if qemu, err = QEMUVersion(); err != nil {
		return b, "", err
	}
	if b.Dirs, err = FindDirs(); err != nil {
		return b, "", err
	}
	if b.Linux, err = Linux(b.Dirs); err != nil {
		return b, "", err
	}
	b.Systems, err = ParseSystems(systems)
	return b, qemu, err
}

// ParseSystems reads a list as in "linux,hardtack".
func ParseSystems(list string) (all []OS, err error) {
	for _, s := range strings.Split(list, ",") {
		switch s {
		case "linux":
			all = append(all, OnLinux)
		case "hardtack":
			all = append(all, OnHardtack)
		default:
			return nil, fmt.Errorf("-systems %q: want linux or hardtack", s)
		}
	}
	return all, nil
}

// QEMUVersion is the name and version of the emulator, for a page.
func QEMUVersion() (string, error) {
	out, err := exec.Command("qemu-system-x86_64", "--version").Output()
	if err != nil {
		return "", fmt.Errorf("install the package qemu-system-x86: %w", err)
	}
	line, _, _ := strings.Cut(string(out), "\n")
	line, _, _ = strings.Cut(line, " (")
	return strings.Replace(line, "QEMU emulator version", "QEMU", 1), nil
}

// Boot describes one run of a machine.
type Boot struct {
	OS      OS
	Root    Tree
	CPUs    int
	Memory  string        // as QEMU takes it
	ICount  bool          // count instructions: one guest nanosecond each
	Machine string        // microvm or q35
	Ports   map[int]int   // host port → guest port
	Disk    string        // a raw image, "" for none
	Driver  string        // of the disk: virtio or nvme; nvme needs q35
	Timeout time.Duration // of the whole run
	Kernel  string        // of Hardtack; empty for bin/kernel.elf
	Args    []string      // more arguments for QEMU
	Pprof   int           // the host's port for Hardtack's profiles; 0 for none
	Netdev  string        // the network card's backend as QEMU takes it; empty for its user network
}

// cpuModel leaves out the fast string instructions, which TCG runs as one
// instruction each and which would make a copy cost nothing.
const cpuModel = "max,erms=off,fsrm=off"

// threadNames makes QEMU name its threads, for cost to tell them apart.
const threadNames = "bench,debug-threads=on"

// A Result is one line of the programs: `name iterations median minimum`.
type Result struct {
	Name            string
	Iterations      int64
	Median, Minimum float64
}

// Machine is a booted one.
type Machine struct {
	cancel  context.CancelFunc
	pid     int // of QEMU or of what started it
	done    chan struct{}
	dir     string
	started time.Time

	mu      sync.Mutex
	results []Result        // guarded by mu
	output  strings.Builder // guarded by mu
	booted  time.Duration   // guarded by mu: until init's first line
	ready   bool            // guarded by mu: init ran its commands
	ended   string          // guarded by mu: how QEMU ended
}

// command is the QEMU (or `hardtack run`) command line of a boot.
func (b *Boot) command(d Dirs, linux LinuxKernel, dir string) ([]string, error) {
	tree := Tree{}
	tree.Merge(b.Root)
	if b.OS == OnLinux {
		tree.Merge(linux.Modules)
	}
	root := filepath.Join(dir, "root.cpio")
	if err := os.WriteFile(root, tree.CPIO(), 0o644); err != nil {
		return nil, err
	}
	if b.OS == OnHardtack {
		return b.hardtackCommand(d, root), nil
	}
	return b.linuxCommand(linux, root), nil
}

// hardtackCommand boots a root file system with our tool.
func (b *Boot) hardtackCommand(d Dirs, root string) []string {
	tool := d.Tool
	if tool == "" {
		tool = filepath.Join(d.Repo, "bin", "hardtack")
	}
	arg := []string{tool, "run", "--cpus", strconv.Itoa(b.CPUs),
		"--memory", b.Memory, "--machine", b.Machine, "--accel", "tcg",
		"--qemu-arg", "-cpu", "--qemu-arg", cpuModel,
		"--qemu-arg", "-name", "--qemu-arg", threadNames}
	if b.Kernel != "" {
		arg = append(arg, "--kernel", b.Kernel)
	}
	if b.Netdev != "" {
		arg = append(arg, "--netdev", b.Netdev)
	}
	if b.Pprof != 0 {
		arg = append(arg, "--pprof", strconv.Itoa(b.Pprof))
	}
	for _, a := range b.Args {
		arg = append(arg, "--qemu-arg", a)
	}
	if b.ICount {
		arg = append(arg, "--icount")
	}
	for host, guest := range b.Ports {
		arg = append(arg, "-p", fmt.Sprintf("%d:%d", host, guest))
	}
	if b.Disk != "" {
		arg = append(arg, "--disk", b.Disk+",driver="+b.Driver)
	}
	return append(arg, root, "--", "/bench/init")
}

// linuxCommand boots it with Linux, on the same machine.
func (b *Boot) linuxCommand(linux LinuxKernel, root string) []string {
	machine := b.Machine
	if machine == "microvm" {
		machine = "microvm,acpi=on,rtc=on"
	}
	// The kernel need not calibrate the time-stamp counter: with -icount it
	// ticks once an instruction and nanosecond, without it at the host's rate.
	khz := "1000000"
	accel := "tcg,thread=multi"
	if b.ICount {
		accel = "tcg"
	} else {
		khz = hostTSC()
	}
	late := ""
	if b.ICount && b.CPUs > 1 {
		// While Linux starts a CPU the first one spins, and QEMU 7.2 then gives the
		// other no time. `osbench online` starts it later. The counters of both are equal,
		// but the test of that takes the other CPU's standing still for a difference.
		late = " maxcpus=1 tsc=reliable"
	}
	device := "virtio-net-device"
	if b.Machine == "q35" {
		device = "virtio-net-pci"
	}
	netdev := cmp.Or(b.Netdev, "user") + ",id=net"
	for host, guest := range b.Ports {
		netdev += fmt.Sprintf(",hostfwd=tcp:127.0.0.1:%d-:%d", host, guest)
	}
	arg := []string{"qemu-system-x86_64", "-M", machine, "-accel", accel, "-cpu", cpuModel,
		"-smp", strconv.Itoa(b.CPUs), "-m", b.Memory, "-nodefaults", "-no-user-config", "-display", "none",
		"-no-reboot", "-serial", "stdio", "-kernel", linux.Image, "-initrd", root,
		"-append", "console=ttyS0 quiet panic=-1 reboot=t tsc_early_khz=" + khz + late + " rdinit=/bench/init",
		"-netdev", netdev, "-device", device + ",netdev=net", "-name", threadNames}
	if b.Disk != "" {
		// As hardtack run has it.
		disk := "nvme,drive=disk0,serial=disk0"
		if b.Driver == "virtio" {
			disk = fmt.Sprintf("%s,drive=disk0,serial=disk0,num-queues=%d", strings.Replace(device, "net", "blk", 1), b.CPUs)
		}
		arg = append(arg, "-drive", "if=none,id=disk0,format=raw,cache=writeback,discard=unmap,file="+b.Disk, "-device", disk)
	}
	arg = append(arg, b.Args...)
	if b.ICount {
		arg = append(arg, "-icount", "shift=0,sleep=off")
	}
	return arg
}

// hostTSC is the counter's rate as the host's kernel found it, in kHz.
func hostTSC() string {
	data, err := os.ReadFile("/proc/cpuinfo")
	if err == nil {
		for _, line := range strings.Split(string(data), "\n") {
			name, value, _ := strings.Cut(line, ":")
			if strings.TrimSpace(name) == "cpu MHz" {
				if mhz, err := strconv.ParseFloat(strings.TrimSpace(value), 64); err == nil {
					return strconv.Itoa(int(mhz) * 1000)
				}
			}
		}
	}
	return "2600000"
}

// Start boots a machine.
func (b Boot) Start(d Dirs, linux LinuxKernel) (*Machine, error) {
	dir, err := os.MkdirTemp(d.Cache, "run")
	if err != nil {
		return nil, err
	}
	arg, err := b.command(d, linux, dir)
	if err != nil {
		os.RemoveAll(dir)
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), b.Timeout)
	cmd := exec.CommandContext(ctx, arg[0], arg[1:]...)
	// The whole group ends with the run: `hardtack run` has a QEMU below it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	out, err := cmd.StdoutPipe()
	if err != nil {
		cancel()
		os.RemoveAll(dir)
		return nil, err
	}
	cmd.Stderr = cmd.Stdout
	m := &Machine{cancel: cancel, done: make(chan struct{}), dir: dir, started: time.Now()}
	if err := cmd.Start(); err != nil {
		cancel()
		os.RemoveAll(dir)
		return nil, err
	}
	m.pid = cmd.Process.Pid
	go func() {
		m.read(out)
		cmd.Wait() // the output tells how it went, and if there is none, this:
		m.mu.Lock()
		m.ended = cmd.ProcessState.String()
		m.mu.Unlock()
		os.RemoveAll(dir)
		close(m.done)
	}()
	return m, nil
}

// read takes the console's lines apart.
func (m *Machine) read(r io.Reader) {
	s := bufio.NewScanner(r)
	for s.Scan() {
		line := strings.TrimRight(s.Text(), "\r")
		m.mu.Lock()
		m.output.WriteString(line + "\n")
		if line == "init: done" || strings.HasPrefix(line, "init: up") {
			m.ready = true
		}
		if f := strings.Fields(line); len(f) == 4 {
			n, err1 := strconv.ParseInt(f[1], 10, 64)
			med, err2 := strconv.ParseFloat(f[2], 64)
			low, err3 := strconv.ParseFloat(f[3], 64)
			if err1 == nil && err2 == nil && err3 == nil {
				if f[0] == "boot" && m.booted == 0 {
					m.booted = time.Since(m.started)
				}
				m.results = append(m.results, Result{f[0], n, med, low})
			}
		}
		m.mu.Unlock()
	}
}

// Wait lets the machine run to its end and returns what was measured.
func (m *Machine) Wait() ([]Result, error) {
	<-m.done
	m.cancel()
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.ready {
		return m.results, fmt.Errorf("the machine did not finish (%s after %v); its console:\n%s",
			m.ended, time.Since(m.started).Round(time.Millisecond), tail(m.output.String()))
	}
	return m.results, nil
}

// Stop ends the machine at once.
func (m *Machine) Stop() {
	m.cancel()
	<-m.done
}

// Cost is the processor time that the machine and this program took so far.
func (m *Machine) Cost() (Cost, error) {
	qemu, err := emulator(m.pid)
	if err != nil {
		return Cost{}, err
	}
	return cost(qemu)
}

// Output is what the console showed so far.
func (m *Machine) Output() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.output.String()
}

// Booted is the time from starting QEMU to init's first line, zero before it.
func (m *Machine) Booted() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.booted
}

// WaitPort waits until a forwarded server sends something in answer to
// request: QEMU itself accepts the connection before the guest listens.
func (m *Machine) WaitPort(port int, request string, limit time.Duration) error {
	for deadline := time.Now().Add(limit); time.Now().Before(deadline); {
		select {
		case <-m.done:
			return fmt.Errorf("the machine ended early; its console:\n%s", tail(m.Output()))
		case <-time.After(100 * time.Millisecond):
		}
		c, err := net.DialTimeout("tcp", "127.0.0.1:"+strconv.Itoa(port), time.Second)
		if err != nil {
			continue
		}
		c.SetDeadline(time.Now().Add(2 * time.Second))
		_, err = io.WriteString(c, request)
		if err == nil {
			_, err = c.Read(make([]byte, 64))
		}
		c.Close()
		if err == nil {
			return nil
		}
	}
	return fmt.Errorf("nothing answers on port %d; the console:\n%s", port, tail(m.Output()))
}

func tail(s string) string {
	if len(s) > 3000 {
		return "…" + s[len(s)-3000:]
	}
	return s
}
