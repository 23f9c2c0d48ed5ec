// Command linuxinit is process 1 of a Linux that runs test programs: it loads the
// modules of disks and network cards, mounts what programs expect, runs guesttest with
// the arguments in /bench/args and ends the machine. An ext4 disk is mounted at /mnt.
package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

func main() {
	if err := run(); err != nil {
		fmt.Println("linuxinit:", err)
	}
	unix.Sync()
	unix.Reboot(unix.LINUX_REBOOT_CMD_RESTART)
}

func run() error {
	if err := setUp(); err != nil {
		return err
	}
	args, err := os.ReadFile("/bench/args")
	if err != nil {
		return err
	}
	cmd := exec.Command("/guesttest", strings.Fields(string(args))...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	return cmd.Run()
}

func setUp() error {
	modules, err := filepath.Glob("/bench/modules/*.ko") // in order
	if err != nil {
		return err
	}
	for _, name := range modules {
		f, err := os.Open(name)
		if err != nil {
			return err
		}
		_ = unix.FinitModule(int(f.Fd()), "", 0) // not every machine has every device
		f.Close()
	}
	for _, m := range []struct{ kind, at string }{
		{"proc", "/proc"}, {"sysfs", "/sys"}, {"devtmpfs", "/dev"}, {"devpts", "/dev/pts"},
		{"tmpfs", "/dev/shm"}, {"tmpfs", "/tmp"}, {"tmpfs", "/run"},
	} {
		if err := os.MkdirAll(m.at, 0o755); err != nil {
			return err
		}
		if err := unix.Mount("none", m.at, m.kind, 0, ""); err != nil {
			return fmt.Errorf("%s: %w", m.at, err)
		}
	}
	if _, err := os.Stat("/dev/vda"); err == nil {
		if err := os.MkdirAll("/mnt", 0o755); err != nil {
			return err
		}
		if err := unix.Mount("/dev/vda", "/mnt", "ext4", 0, ""); err != nil {
			return fmt.Errorf("/mnt: %w", err)
		}
	}
	return loopback()
}

// loopback sets lo up.
func loopback() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	ifr, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	ifr.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, ifr)
}
