package abi

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	osbench "hardtack/bench/os"
)

// build compiles the program, whose sources are in a directory.
func build(dir, out string) error {
	sources, err := filepath.Glob(filepath.Join(dir, "*.c"))
	if err != nil {
		return err
	}
	arg := append([]string{"-static", "-O1", "-w", "-o", out}, sources...)
	if text, err := exec.Command("gcc", arg...).CombinedOutput(); err != nil {
		return fmt.Errorf("gcc: %w\n%s", err, text)
	}
	return nil
}

// disk makes an empty ext4 disk.
func disk(file string) error {
	mke2fs := "mke2fs"
	if _, err := exec.LookPath(mke2fs); err != nil {
		mke2fs = "/sbin/mke2fs"
	}
	if text, err := exec.Command(mke2fs, "-q", "-F", "-t", "ext4", "-E", "lazy_itable_init=0,lazy_journal_init=0", file, "32M").CombinedOutput(); err != nil {
		return fmt.Errorf("mke2fs: %w\n%s", err, text)
	}
	return nil
}

// onLinux runs the program as process 1 of Debian's kernel and returns its text.
func onLinux(program, dir string, limit time.Duration) (string, error) {
	dirs, err := osbench.FindDirs()
	if err != nil {
		return "", err
	}
	linux, err := osbench.Linux(dirs)
	if err != nil {
		return "", err
	}
	image := filepath.Join(dir, "linux.img")
	if err := disk(image); err != nil {
		return "", err
	}
	data, err := os.ReadFile(program)
	if err != nil {
		return "", err
	}
	root := osbench.Tree{}
	root.Add("bench/init", 0o755, data)
	boot := osbench.Boot{OS: osbench.OnLinux, Root: root, CPUs: 2, Memory: "512M", Machine: "microvm", Disk: image, Driver: "virtio", Timeout: limit,
		// Addresses of 47 bits, as most machines have them and as Hardtack has.
		Args: []string{"-cpu", "max,la57=off"}}
	m, err := boot.Start(dirs, linux)
	if err != nil {
		return "", err
	}
	_, err = m.Wait()
	return m.Output(), err
}

// onHardtack runs the program as process 1 of a kernel and returns its text.
func onHardtack(tool, kernel, program, dir string, limit time.Duration, argv ...string) (string, error) {
	root := filepath.Join(dir, "root")
	for _, d := range []string{"bench", "tmp", "proc", "dev", "sys", "run"} {
		if err := os.MkdirAll(filepath.Join(root, d), 0o755); err != nil {
			return "", err
		}
	}
	data, err := os.ReadFile(program)
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(root, "bench/init"), data, 0o755); err != nil {
		return "", err
	}
	image := filepath.Join(dir, "hardtack.img")
	if err := disk(image); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit+30*time.Second)
	defer cancel()
	arg := []string{"run", "--accel", "tcg", "--cpus", "2", "--memory", "512M", "--timeout", limit.String(), "--disk", image}
	if kernel != "" {
		arg = append(arg, "--kernel", kernel)
	}
	cmd := exec.CommandContext(ctx, tool, append(append(arg, root, "--", "/bench/init"), argv...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	out, err := cmd.CombinedOutput()
	text := string(out)
	if !strings.Contains(text, "abi: done") {
		return text, errors.Join(errors.New("the machine did not finish"), err)
	}
	return text, nil
}
