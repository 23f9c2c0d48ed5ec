package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"syscall"

	"hardtack/tool/disk"
	"hardtack/tool/fault"
	"hardtack/tool/rootfs"
)

// configureDisk is the size of the disk on which packages are configured; what is not written
// takes no space.
const configureDisk = 16 << 30

// guestRun runs a program in a machine that has the tree as its root, on a disk, and returns
// the tree that it has become. The machine has no network.
func guestRun(ctx context.Context, log io.Writer, kernel, memory string, tree *rootfs.Tree, program string) (*rootfs.Tree, error) {
	f, err := os.CreateTemp("", "root-")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := f.Truncate(configureDisk); err != nil {
		return nil, err
	}
	if err := disk.Write(f, configureDisk, tree, disk.Options{Zeroed: true}); err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	args := []string{"run", "--root", f.Name(), "--net", "none", "--memory", memory}
	if kernel != "" {
		args = append(args, "--kernel", kernel)
	}
	cmd := exec.CommandContext(ctx, self, append(args, "--", program)...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
		return nil, err
	}
	if status := cmd.ProcessState.ExitCode(); status != 0 {
		return nil, fault.With(max(status, 1), "the machine that runs the maintainer scripts failed")
	}
	d, err := disk.Open(f.Name(), 0, false)
	if err != nil {
		return nil, err
	}
	return disk.Peek(d) // the tree reads from the disk, which is open until this command ends
}
