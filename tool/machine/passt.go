package machine

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"hardtack/tool/fault"
)

// passt is passt(1), which lets a guest talk with the host's network as an ordinary program's
// sockets do. It has the other end of the card's cable, and ends when QEMU closes its own.
type passt struct {
	cmd    *exec.Cmd
	stderr bytes.Buffer
	ended  chan struct{}
}

// passtArgs are the arguments, given the descriptor of the cable's end.
func (c *Config) passtArgs(fd int) []string {
	args := []string{"--foreground", "--quiet", "--stderr", "--fd", fmt.Sprint(fd)}
	ports := map[string][]string{}
	for _, f := range c.Publish {
		if f.Cluster != 0 {
			continue
		}
		ports[f.Proto] = append(ports[f.Proto], fmt.Sprintf("%s/%d:%d", f.Addr, f.Host, f.Guest))
	}
	for _, p := range []struct{ proto, flag string }{{"tcp", "--tcp-ports"}, {"udp", "--udp-ports"}} {
		if len(ports[p.proto]) == 0 {
			args = append(args, p.flag, "none")
		}
		for _, s := range ports[p.proto] {
			args = append(args, p.flag, s)
		}
	}
	if c.MTU != 0 {
		args = append(args, "--mtu", fmt.Sprint(c.MTU))
	}
	return args
}

// startPasst starts passt and returns QEMU's end of the cable.
func (c *Config) startPasst() (*passt, *os.File, error) {
	name, err := exec.LookPath("passt")
	if err != nil {
		return nil, nil, fault.With(fault.Host, "--net passt: passt is not installed; on Debian: apt-get install passt")
	}
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	ours, theirs := os.NewFile(uintptr(fds[0]), "cable"), os.NewFile(uintptr(fds[1]), "cable")
	defer theirs.Close()
	p := &passt{cmd: exec.Command(name, c.passtArgs(3)...), ended: make(chan struct{})}
	p.cmd.ExtraFiles = []*os.File{theirs}
	p.cmd.Stderr = &p.stderr
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: unix.SIGTERM, Setpgid: true}
	if err := p.cmd.Start(); err != nil {
		ours.Close()
		return nil, nil, fault.With(fault.Host, "--net passt: %w", err)
	}
	go func() {
		_ = p.cmd.Wait()
		close(p.ended)
	}()
	if err := p.settle(); err != nil {
		ours.Close()
		return nil, nil, err
	}
	return p, ours, nil
}

// settle gives passt a moment to find what it cannot do, which it says and ends.
func (p *passt) settle() error {
	select {
	case <-p.ended:
		text := strings.TrimSpace(p.stderr.String())
		if text == "" {
			text = "it ends at once"
		}
		return fault.With(fault.Host, "--net passt: %w", errors.New(text))
	case <-time.After(300 * time.Millisecond):
		return nil
	}
}

// stop ends passt, which ends by itself when its peer does.
func (p *passt) stop() {
	if p == nil {
		return
	}
	select {
	case <-p.ended:
	case <-time.After(time.Second):
		_ = p.cmd.Process.Kill()
		<-p.ended
	}
}
