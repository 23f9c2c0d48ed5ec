package guest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"hardtack/tool/debian"
	"hardtack/tool/rootfs"
)

// configured are packages whose scripts make a user, a key, an alternative.
var configured = []string{"redis-server", "openssh-server"}

// Maintainer scripts run in a machine leave what they leave on Linux.
func TestConfigure(t *testing.T) {
	needGuest(t)
	if testing.Short() {
		t.Skip("runs the maintainer scripts of Debian's base system, for two minutes")
	}
	t.Parallel()
	if err := exec.Command("apt-cache", append([]string{"show"}, configured...)...).Run(); err != nil {
		t.Skip("apt does not know the packages; apt-get update on Debian 12")
	}
	repo, dir := repository(t), t.TempDir()
	tool, cache := command(t, repo, dir), filepath.Join(repo, "build", "debs")
	tar := filepath.Join(dir, "root.tar")
	fetching.Lock() // one after the other brings packages
	defer fetching.Unlock()
	out, err := exec.Command(tool, append([]string{"image", "debian", "-o", tar, "--cache", cache, "--configure"}, configured...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, tail(string(out), 60))
	}
	for _, want := range []string{"maintainer scripts that ran: ", "redis-server (postinst)", "openssh-server (postinst)", "base-passwd (preinst)"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("it does not say %q\n%s", want, tail(string(out), 3))
		}
	}
	for _, wrong := range []string{"that failed", "that were not run"} {
		if strings.Contains(string(out), wrong) {
			t.Errorf("it says %q\n%s", wrong, tail(string(out), 60))
		}
	}

	t.Run("linux", func(t *testing.T) { compareConfigured(t, readTar(t, tar), cache) })

	// What came of it serves in a machine, under the machine's own name.
	const ask = "id redis && test -s /etc/ssh/ssh_host_ed25519_key && readlink -f /usr/bin/pager && " +
		"dpkg-query -W -f '${Status}\\n' openssh-server && cat /etc/hostname && getent hosts galley && grep -c nameserver /etc/resolv.conf"
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	run := exec.CommandContext(ctx, tool, "run", "--hostname", "galley", "--memory", "1G", tar, "--", "/bin/sh", "-c", ask)
	got, err := run.CombinedOutput()
	want := "/usr/bin/more\ninstall ok installed\ngalley\n127.0.1.1       galley\n1\n"
	if text := strings.ReplaceAll(string(got), "\r", ""); err != nil || !strings.HasPrefix(text, "uid=") || !strings.HasSuffix(text, want) {
		t.Errorf("in a machine: %v\n%s", err, got)
	}
}

func readTar(t *testing.T, name string) *rootfs.Tree {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	tree := rootfs.New(configuredBudget)
	if err := tree.ReadTar(io.NewSectionReader(f, 0, info.Size())); err != nil {
		t.Fatal(err)
	}
	return tree
}

var configuredBudget = rootfs.Budget{Bytes: 8 << 30, Entries: 1 << 20, Disk: true}

// compareConfigured runs the same scripts on this machine's Linux, in a directory as root.
func compareConfigured(t *testing.T, got *rootfs.Tree, cache string) {
	if os.Geteuid() != 0 {
		t.Skip("needs root for chroot")
	}
	dir := t.TempDir()
	o := debian.Options{Packages: configured, Cache: cache, Log: io.Discard,
		Run: func(ctx context.Context, tree *rootfs.Tree, program string) (*rootfs.Tree, error) {
			return chrooted(ctx, t, dir, tree, program)
		}}
	want, err := debian.Build(context.Background(), o, configuredBudget)
	if err != nil {
		t.Fatal(err)
	}
	have, need := inventory(t, got), inventory(t, want)
	for name, h := range have {
		if need[name] != h {
			t.Errorf("/%s is\n%s\nin the machine, and\n%s\non Linux", name, h, need[name])
		}
	}
	for name := range need {
		if _, ok := have[name]; !ok {
			t.Errorf("/%s is missing", name)
		}
	}
}

// chrooted unpacks the tree and runs a program in it. It skips the test where the host does
// not let it.
func chrooted(ctx context.Context, t *testing.T, dir string, tree *rootfs.Tree, program string) (*rootfs.Tree, error) {
	var plain bytes.Buffer
	if err := tree.WriteTar(&plain); err != nil {
		return nil, err
	}
	unpack := exec.CommandContext(ctx, "tar", "-C", dir, "-xp", "--numeric-owner")
	unpack.Stdin = &plain
	if out, err := unpack.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("tar: %w: %s", err, out)
	}
	for i, dev := range []string{"null", "zero", "urandom"} {
		_ = os.MkdirAll(filepath.Join(dir, "dev"), 0o755)
		if err := syscall.Mknod(filepath.Join(dir, "dev", dev), syscall.S_IFCHR|0o666, 1<<8|[]int{3, 5, 9}[i]); err != nil {
			t.Skipf("the host makes no devices: %v", err)
		}
	}
	cmd := exec.CommandContext(ctx, program)
	cmd.Dir, cmd.SysProcAttr = "/", &syscall.SysProcAttr{Chroot: dir}
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%s: %w: %s", program, err, out)
	}
	after := rootfs.New(configuredBudget)
	return after, after.ReadDir(dir, rootfs.AsIs)
}

// inventory is what the scripts may have had to do with: for each file its type, mode, owner
// and content, where that is not another each time.
func inventory(t *testing.T, tree *rootfs.Tree) map[string]string {
	list := map[string]string{}
	err := tree.Walk(func(name string, n *rootfs.Inode) error {
		for _, other := range []string{"dev", "proc", "sys", "run", "tmp", "var/log/", "var/cache/ldconfig"} {
			if strings.HasPrefix(name+"/", other+"/") || strings.HasSuffix(other, "/") && strings.HasPrefix(name, other) {
				return nil
			}
		}
		what := fmt.Sprintf("%o %d:%d %s ", n.Mode, n.UID, n.GID, n.Target)
		if n.Type() == rootfs.Regular && !strings.HasPrefix(name, "etc/ssh/ssh_host_") {
			text, err := io.ReadAll(n.Data.Open())
			if err != nil {
				return err
			}
			if !strings.HasPrefix(name, "etc/") && len(text) > 1<<12 {
				text = fmt.Appendf(nil, "%d bytes", len(text))
			}
			what += string(text)
		}
		list[name] = what
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}
