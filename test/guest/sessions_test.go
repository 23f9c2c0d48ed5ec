package guest

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Debian's servers and tools as they are installed, each in a scripted session of
// scripts/sessions: one boot for all.

// sessionPackages are what scripts/sessions needs.
var sessionPackages = []string{"bash", "coreutils", "busybox-static", "diffutils", "findutils", "grep", "sed", "mawk",
	"util-linux", "bsdutils", "mount", "procps", "passwd", "login", "libpam-modules", "libpam-modules-bin", "libpam-runtime",
	"openssh-server", "openssh-client", "openssh-sftp-server", "sshpass", "expect", "cron", "apache2", "openssl", "curl",
	"dnsmasq-base", "bind9-dnsutils", "iperf3", "ncurses-base", "sysstat", "numactl",
	"iproute2", "iputils-ping", "tcpdump", "isc-dhcp-client", "udhcpc", "netcat-openbsd", "socat", "libc-bin"}

// sessions are the scripts in the order in which they run.
var sessions = []string{"cron", "sshd", "apache", "dnsmasq", "iperf3", "terminal", "machine", "iproute", "tcpdump", "netcat", "dhcp"}

// debianDisk makes NAME.tar and a disk of packages and of the files of a directory.
func debianDisk(t *testing.T, repo, tool, dir, name, add, size string, packages []string) string {
	t.Helper()
	if err := exec.Command("apt-cache", append([]string{"show"}, packages...)...).Run(); err != nil {
		t.Skip("apt does not know the packages; apt-get update on Debian 12")
	}
	tar, disk := filepath.Join(dir, name+".tar"), filepath.Join(dir, name+".img")
	cache := filepath.Join(repo, "build", "debs")
	fetching.Lock()
	defer fetching.Unlock()
	for _, args := range [][]string{
		append([]string{"image", "debian", "-o", tar, "--minimal", "--cache", cache, "--add", add}, packages...),
		{"image", "disk", "-o", disk, "--size", size, tar},
	} {
		if out, err := exec.Command(tool, args...).CombinedOutput(); err != nil {
			t.Fatalf("hardtack %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	return disk
}

func TestSessions(t *testing.T) {
	needGuest(t)
	if testing.Short() {
		t.Skip("boots a guest with servers, for a minute")
	}
	t.Parallel()
	repo, dir := repository(t), t.TempDir()
	tool := command(t, repo, dir)
	add := filepath.Join(dir, "add")
	if err := os.CopyFS(filepath.Join(add, "scripts"), os.DirFS(filepath.Join(repo, "test/guest/scripts"))); err != nil {
		t.Fatal(err)
	}
	disk := debianDisk(t, repo, tool, dir, "sessions", add, "2G", sessionPackages)
	var out console
	cmd := fromDisk(tool, disk, &out, "sessions", sessions...)
	if i := slices.Index(cmd.Args, "--timeout"); i > 0 {
		cmd.Args[i+1] = "40m" // of a machine that has much else to do
	}
	if err := cmd.Run(); err != nil {
		t.Errorf("sessions: %v", err)
	}
	text := strings.ReplaceAll(out.String(), "\r", "")
	for _, name := range sessions {
		t.Run(name, func(t *testing.T) {
			if strings.Contains(text, "session "+name+": ok\n") {
				return
			}
			_, why, _ := strings.Cut(text, "session "+name+": failed\n")
			why, _, _ = strings.Cut(why, "\nsession ")
			t.Errorf("the session failed\n%s", tail(why, 60))
		})
	}
	if t.Failed() {
		t.Logf("the end of the console:\n%s", tail(text, 20))
	}
}
