package main

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	osbench "hardtack/bench/os"
)

// fromDisk starts Redis from an ext4 disk: Hardtack with the disk as its root, Linux with a
// small archive that mounts it.
func (b *bench) fromDisk(system osbench.OS, servers osbench.Tree) error {
	archive, disk := filepath.Join(b.dir, "disk.cpio"), filepath.Join(b.dir, "disk")
	if _, err := os.Stat(disk); err != nil {
		servers.Add("tmp", os.ModeDir|0o777, nil) // where Redis works
		if err := os.WriteFile(archive, servers.CPIO(), 0o600); err != nil {
			return err
		}
		if _, err := b.hardtack("image", "disk", "-o", disk, "--size", "256M", archive); err != nil {
			return err
		}
	}
	port, err := freePort()
	if err != nil {
		return err
	}
	if system == osbench.OnLinux {
		return b.linuxFromDisk(disk, port)
	}
	begun := time.Now()
	defer b.hardtack("rm", "-f", "disk")
	if _, err := b.hardtack("run", "-d", "--name", "disk", "--accel", "tcg", "--cpus", "2", "--memory", "256M", "-p", fmt.Sprintf("%d:6379", port),
		"--root", disk, "--", "/usr/bin/redis-server", "/etc/redis.conf"); err != nil {
		return err
	}
	err = answer(port)
	b.add("disk Hardtack", ms(time.Since(begun)))
	return err
}

func (b *bench) linuxFromDisk(disk string, port int) error {
	root, err := osbench.Programs(b.Dirs, "& /bench/fromdisk /usr/bin/redis-server /etc/redis.conf\nport 6379\nforever\n")
	if err != nil {
		return err
	}
	if err := b.compile(root, "fromdisk"); err != nil {
		return err
	}
	boot := osbench.Boot{OS: osbench.OnLinux, Root: root, CPUs: 2, Memory: "256M", Machine: "microvm",
		Disk: disk, Driver: "virtio", Ports: map[int]int{port: 6379}, Timeout: 5 * time.Minute}
	begun := time.Now()
	m, err := boot.Start(b.Dirs, b.Linux)
	if err != nil {
		return err
	}
	defer m.Stop()
	if err := answer(port); err != nil {
		return fmt.Errorf("%w: %s", err, m.Output())
	}
	b.add("disk Linux", ms(time.Since(begun)))
	return nil
}
