package guest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"hardtack/abi/linux"
)

// storageDisk makes a disk with the driver and programs on it: ours, or one of mke2fs
// with blocks of another size. When the test ends the disk must be clean.
func storageDisk(t *testing.T, tool, root string, blockSize int) string {
	t.Helper()
	disk := filepath.Join(t.TempDir(), "disk.img")
	var cmd *exec.Cmd
	if blockSize == 0 {
		cmd = exec.Command(tool, "image", "disk", "-o", disk, "--size", "512M", root)
	} else {
		cmd = exec.Command(mke2fs(), "-q", "-t", "ext4", "-b", fmt.Sprint(blockSize), "-d", root, disk, "512M")
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", cmd.Args, err, out)
	}
	t.Cleanup(func() { fsck(t, tool, disk) })
	return disk
}

// guestOnDisk runs a command in a guest whose root is the disk.
func guestOnDisk(tool, disk string, flags []string, argv ...string) (string, error) {
	accel := os.Getenv("HARDTACK_ACCEL")
	if accel == "" {
		accel = "tcg"
	}
	arg := append([]string{"run", "--accel", accel, "--timeout", "8m", "--net", "none", "--root", disk}, flags...)
	cmd := exec.Command(tool, append(append(arg, "--"), argv...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	timer := time.AfterFunc(9*time.Minute, func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
	defer timer.Stop()
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// TestStorage compares what programs see of an ext4 disk in the guest with what they
// see on this machine's, where that is one, and has e2fsck look at the disk afterwards.
func TestStorage(t *testing.T) {
	needGuest(t)
	if _, err := exec.LookPath("gcc"); err != nil {
		t.Skip("needs gcc: install gcc and libc6-dev")
	}
	t.Parallel()
	repo, dir := repository(t), t.TempDir()
	if _, _, err := buildPrograms(repo, dir, "files", "fsinfo", "memory", "times"); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"storage", "exercise", "extents"} {
		if err := cBuild(filepath.Join(dir, "programs", name), filepath.Join(repo, "test/guest/storage", name+".c")); err != nil {
			t.Fatal(err)
		}
	}
	if err := cBuild(filepath.Join(dir, "mounts"), filepath.Join(repo, "test/guest/storage/mounts.c")); err != nil {
		t.Fatal(err)
	}
	tool := command(t, repo, dir)
	root := guestRoot(t, dir, "guesttest", "programs", "mounts")
	for _, d := range []string{"mnt", "mnt2"} {
		if err := os.Mkdir(filepath.Join(root, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	names := []string{"exercise", "extents", "files", "fsinfo", "memory", "storage", "times"}
	want := storageOnHost(t, root, names)
	t.Run("programs", func(t *testing.T) {
		disk := storageDisk(t, tool, root, 0)
		out, err := guestOnDisk(tool, disk, nil, "/guesttest", "-limit", "200s", "-run", strings.Join(names, ","), "/programs")
		got, _, done := parse(out)
		if !done {
			t.Fatalf("the machine ended: %v\n%s", err, tail(out, 60))
		}
		reference{t: t, root: root, disk: true}.answers(names, want, got)
		for _, name := range names {
			t.Run(name, func(t *testing.T) {
				if w := want[name]; w != nil {
					compare(t, w, got[name], "")
				} else if got[name].verdict != "PASS "+name {
					t.Error(got[name].verdict)
				}
			})
		}
	})
	// Little memory and small blocks: pages are evicted and read again, and have
	// several blocks.
	t.Run("small", func(t *testing.T) {
		disk := storageDisk(t, tool, root, 1024)
		out, err := guestOnDisk(tool, disk, []string{"--memory", "64M", "--cpus", "4", "-w", "/tmp"},
			"/programs/exercise", "child", "800", "11", "12", "13", "14", "15", "16", "17", "18")
		if err != nil || !strings.Contains(out, "done") {
			t.Errorf("%v\n%s", err, tail(out, 40))
		}
	})
	t.Run("mounts", func(t *testing.T) {
		disk, second := storageDisk(t, tool, root, 0), storageDisk(t, tool, filepath.Join(root, "mnt"), 4096)
		out, err := guestOnDisk(tool, disk, []string{"--disk", second}, "/mounts", "mounts", "/dev/vdb")
		if err != nil {
			t.Errorf("%v\n%s", err, tail(out, 60))
		}
		lines := slices.DeleteFunc(strings.Split(strings.ReplaceAll(out, "\r", ""), "\n"), func(s string) bool { return strings.HasPrefix(s, "kernel: ") })
		if got := strings.TrimSpace(strings.Join(lines, "\n")); got != strings.TrimSpace(mountsText) {
			t.Errorf("got\n%s\nwant\n%s", got, mountsText)
		}
	})
}

// storageOnHost runs the programs on this machine's disk, if its file system is ext4.
func storageOnHost(t *testing.T, root string, names []string) map[string]*section {
	tmp := t.TempDir()
	var st syscall.Statfs_t
	if err := syscall.Statfs(tmp, &st); err != nil || st.Type != linux.EXT4_SUPER_MAGIC || st.Bsize != 4096 {
		t.Logf("no ext4 at %s: nothing to compare with", tmp)
		return nil
	}
	cmd := exec.Command(filepath.Join(root, "guesttest"), "-limit", "200s", "-tmp", tmp, "-run", strings.Join(names, ","), filepath.Join(root, "programs"))
	out, err := cmd.Output()
	if err != nil {
		t.Errorf("on this machine's Linux: %v", err)
	}
	sections, order, _ := parse(string(out))
	if slices.Sort(order); !slices.Equal(order, names) {
		t.Errorf("ran %v", order)
	}
	return sections
}

// mountsText is what Linux prints, but for quotas, which it has, and errors=, which it
// shows where it was asked for.
const mountsText = `
=== RUN   mounts
    no device: ENOENT
    a file: ENOTBLK
    unknown type: ENODEV
    quotas: EINVAL
    unknown option: EINVAL
    mount: ok
    mounted: /mnt ext4 rw,relatime,errors=remount-ro 0 0
    in use for O_EXCL: EBUSY
    mkdir: ok
    a second time: ok
    a second time, read-only: EBUSY
    the same: 0
    umount the second: ok
    umount while a file is open: EBUSY
    remount read-only while it is open for writing: EBUSY
    umount of the working directory: EBUSY
    remount read-only: ok
    remounted: /mnt ext4 ro,relatime,errors=remount-ro 0 0
    write: EROFS
    mkdir: EROFS
    unlink: EROFS
    chmod: EROFS
    it holds content
    remount for writing: ok
    remounted: /mnt ext4 rw,noatime,errors=remount-ro 0 0
    mkdir: ok
    detach: ok
    it is not there: ENOENT
    but the file is: ok
    mount again: ok
    the directory is there: ok
    umount: ok
    umount again: EINVAL
--- PASS: mounts
`
