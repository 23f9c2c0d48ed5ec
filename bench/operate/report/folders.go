package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	osbench "hardtack/bench/os"
)

// A way is how a guest reaches files of the host.
type way struct {
	name    string
	system  osbench.OS
	kind    string // of the file system
	options string
}

var ways = []way{
	{"9P, cache=none", osbench.OnHardtack, "9p", "trans=virtio,version=9p2000.L,cache=none"},
	{"9P, cache=none", osbench.OnLinux, "9p", "trans=virtio,version=9p2000.L,cache=none"},
	{"9P, cache=loose", osbench.OnHardtack, "9p", "trans=virtio,version=9p2000.L,cache=loose"},
	{"9P, cache=loose", osbench.OnLinux, "9p", "trans=virtio,version=9p2000.L,cache=loose"},
	{"virtio-blk", osbench.OnHardtack, "ext4", "-"},
	{"virtio-blk", osbench.OnLinux, "ext4", "-"},
}

// folderRows are the rows of bench/operate/guest/folder.c.
var folderRows = []struct{ name, text string }{
	{"create", "create a file of 1 KiB"}, {"stat", "stat"}, {"openread", "open, read 1 KiB, close"},
	{"unlink", "unlink"}, {"write4k", "write 4 KiB"}, {"read4k", "read 4 KiB"},
	{"write1m", "write 1 MiB and fsync"}, {"read1m", "read 1 MiB"}, {"gitstatus", "git status, 400 files"},
}

// folders counts the guest's instructions for files by each way, in one boot of each.
func (b *bench) folders(int) error {
	linux, err := osbench.FullLinux(b.Dirs)
	if err != nil {
		return err
	}
	tools, err := osbench.Git(b.Dirs)
	if err != nil {
		return err
	}
	if err := b.compile(tools, "folder"); err != nil {
		return err
	}
	for _, w := range ways {
		b.Log("folders: %v, %s", w.system, w.name)
		results, err := b.folder(w, linux, tools, fmt.Sprintf("/bench/folder %s %%s %s 100\n", w.kind, w.options))
		if err != nil {
			return err
		}
		for _, r := range results {
			b.add(fmt.Sprint(r.Name, " ", w.name, " ", w.system), r.Median)
		}
	}
	return nil
}

// compile puts a program of bench/operate/guest into a tree.
func (b *bench) compile(into osbench.Tree, name string) error {
	program := filepath.Join(b.dir, name)
	cc := exec.Command("gcc", "-static", "-O2", "-Wall", "-s", "-o", program, filepath.Join(b.Dirs.Repo, "bench/operate/guest", name+".c"))
	if out, err := cc.CombinedOutput(); err != nil {
		return fmt.Errorf("gcc: %w\n%s", err, out)
	}
	code, err := os.ReadFile(program)
	if err == nil {
		into.Add("bench/"+name, 0o755, code)
	}
	return err
}

// folder boots a system with a new folder.
func (b *bench) folder(w way, linux osbench.LinuxKernel, tools osbench.Tree, command string) ([]osbench.Result, error) {
	dir, err := os.MkdirTemp(b.dir, "folder")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	shared := filepath.Join(dir, "shared")
	if err := repository(filepath.Join(shared, "r")); err != nil {
		return nil, err
	}
	boot := osbench.Boot{OS: w.system, CPUs: 1, Memory: "512M", Machine: "microvm", ICount: true, Timeout: 10 * time.Minute}
	source := "folder0"
	switch w.kind {
	case "9p":
		boot.Args = []string{"-fsdev", "local,id=folder0,path=" + shared + ",multidevs=remap,security_model=none",
			"-device", "virtio-9p-device,fsdev=folder0,mount_tag=folder0"}
	default:
		source, boot.Driver, boot.Disk = "/dev/vda", "virtio", filepath.Join(dir, "disk")
		if _, err := b.hardtack("image", "disk", "-o", boot.Disk, "--size", "256M", shared); err != nil {
			return nil, err
		}
	}
	if boot.Root, err = osbench.Programs(b.Dirs, fmt.Sprintf(command, source)); err != nil {
		return nil, err
	}
	boot.Root.Merge(tools)
	m, err := boot.Start(b.Dirs, linux)
	if err != nil {
		return nil, err
	}
	results, err := m.Wait()
	if err == nil && !strings.Contains(m.Output(), "unlink ") {
		err = fmt.Errorf("%v, %s: it did not measure all:\n%s", w.system, w.name, m.Output())
	}
	return results, err
}

// repository makes a git repository of 400 files.
func repository(dir string) error {
	for i := range 400 {
		d := filepath.Join(dir, fmt.Sprintf("d%d", i%20))
		if err := os.MkdirAll(d, 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(d, fmt.Sprintf("f%d", i)), fmt.Appendln(nil, "file", i), 0o644); err != nil {
			return err
		}
	}
	for _, args := range [][]string{{"init", "-q"}, {"add", "."}, {"commit", "-qm", "files"}} {
		cmd := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=who", "-c", "user.email=who@example.org"}, args...)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("git %s: %w\n%s", args[0], err, out)
		}
	}
	return nil
}

// folderTable is the page's part about folders.
func (b *bench) folderTable(p *bytes.Buffer) {
	p.WriteString("\n| |")
	for _, w := range ways {
		fmt.Fprintf(p, " %v, %s |", w.system, w.name)
	}
	p.WriteString("\n| --- |" + strings.Repeat(" ---: |", len(ways)) + "\n")
	for _, r := range folderRows {
		fmt.Fprintf(p, "| %s |", r.text)
		for _, w := range ways {
			fmt.Fprintf(p, " %s |", b.figure(fmt.Sprint("folders ", r.name, " ", w.name, " ", w.system)))
		}
		p.WriteString("\n")
	}
}
