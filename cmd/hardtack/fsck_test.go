package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"hardtack/ext4"
)

// fsckDisk runs the command.
func fsckDisk(args ...string) (string, error) {
	var out bytes.Buffer
	cmd := newFsck()
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	cmd.SetArgs(args)
	err := cmd.Execute()
	return out.String(), err
}

// TestFsckReplay: a disk that was not unmounted is checked as the next mount will leave
// it, without a write; with --write it is left so.
func TestFsckReplay(t *testing.T) {
	name := filepath.Join(t.TempDir(), "disk.img")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	const size = 32 << 20
	if err := f.Truncate(size); err != nil {
		t.Fatal(err)
	}
	dev := ext4.NewFileDevice(f, size)
	if err := ext4.Mkfs(dev, ext4.MkfsOptions{Zeroed: true}); err != nil {
		t.Fatal(err)
	}
	fs, err := ext4.Mount(dev, ext4.Options{})
	if err != nil {
		t.Fatal(err)
	}
	root, err := fs.Root()
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []string{"a", "b"} {
		if _, err := fs.Create(root, n, ext4.NewInode{Mode: 0o100644}); err != nil {
			t.Fatal(err)
		}
	}
	if err := fs.Sync(); err != nil { // and the machine stops
		t.Fatal(err)
	}
	before, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if out, err := fsckDisk("--write", name); err == nil {
		t.Errorf("--write alone: %s", out)
	}
	if out, err := fsckDisk("--replay", name); err != nil {
		t.Errorf("--replay: %v\n%s", err, out)
	}
	after, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(before, after) {
		t.Fatal("--replay has written to the disk")
	}
	if out, err := fsckDisk("--replay", "--write", name); err != nil {
		t.Errorf("--replay --write: %v\n%s", err, out)
	}
	if n, err := ext4.Check(dev, func(s string) { t.Log(s) }); n != 0 || err != nil {
		t.Errorf("%d problems, %v", n, err)
	}
	tool, err := exec.LookPath("e2fsck")
	if err != nil {
		tool = "/sbin/e2fsck"
	}
	if _, err := os.Stat(tool); err != nil {
		t.Skip("e2fsck is not installed (package e2fsprogs)")
	}
	if out, err := exec.Command(tool, "-fn", name).CombinedOutput(); err != nil {
		t.Errorf("e2fsck: %v\n%s", err, out)
	}
}
