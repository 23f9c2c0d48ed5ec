package guest

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A further cluster drives a disk and a network card of its own, serves a published port, and
// does so again after it was restarted; another's root file system is on a disk.
func TestClusterDevices(t *testing.T) {
	needGuest(t)
	t.Parallel()
	repo, dir := repository(t), t.TempDir()
	for _, name := range []string{"devices", "served"} {
		if err := goBuild(repo, filepath.Join(dir, name), "./test/guest/clusterdevices"); err != nil {
			t.Fatal(err)
		}
	}
	tool := command(t, repo, dir)
	root := guestRoot(t, dir, "devices", "served")
	if err := os.MkdirAll(filepath.Join(root, "sbin"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(filepath.Join(root, "devices"), filepath.Join(root, "sbin", "init")); err != nil {
		t.Fatal(err)
	}
	for _, machine := range []string{"microvm", "q35"} {
		t.Run(machine, func(t *testing.T) {
			dir := t.TempDir()
			disk, rootDisk := filepath.Join(dir, "disk"), filepath.Join(dir, "root")
			if err := os.WriteFile(disk, make([]byte, 1<<20), 0o644); err != nil {
				t.Fatal(err)
			}
			if out, err := exec.Command(tool, "image", "disk", "--size", "64M", "-o", rootDisk, root).CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			port := freePort(t)
			answers := make(chan error, 1)
			go func() { answers <- askClusters(port) }()
			out, err := inGuest(t, tool, root, 10*time.Minute, []string{"--machine", machine,
				"--cluster", "cpus=1,memory=160M",
				"--cluster", "cpus=1,memory=96M,init=/devices,disk=" + disk + ",net",
				"--cluster", "cpus=1,memory=96M,root=" + rootDisk,
				"-p", fmt.Sprintf("%d:80@1", port)}, "/served")
			out = strings.ReplaceAll(out, "\r", "")
			for _, want := range []string{"[1] disk of 1048576 bytes", "[2] root on ext4", "life 2", "foreign pages: 0", "the end"} {
				if !strings.Contains(out, want) {
					t.Errorf("the console lacks %q", want)
				}
			}
			if strings.Contains(out, "foreign pages: 1") || strings.Contains(out, "WRONG") {
				t.Error("the console has errors")
			}
			if err != nil || t.Failed() {
				t.Fatalf("%v\n%s", err, tail(out, 100))
			}
			if err := <-answers; err != nil {
				t.Error(err)
			}
			b, err := os.ReadFile(disk)
			if want := []byte("written in life 2"); err != nil || !bytes.HasPrefix(b, want) {
				t.Errorf("the disk has %q, %v", b[:min(len(b), 32)], err)
			}
		})
	}
}

// askClusters gets two pages of the published port: of the first life and of the second.
func askClusters(port int) error {
	client := http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	var last error
	for life, end := 1, time.Now().Add(9*time.Minute); life <= 2 && time.Now().Before(end); {
		r, err := client.Get(fmt.Sprintf("http://127.0.0.1:%d/", port))
		if err != nil {
			last = err
			time.Sleep(50 * time.Millisecond)
			continue
		}
		b, err := io.ReadAll(r.Body)
		r.Body.Close()
		if last = err; err == nil && string(b) == fmt.Sprintf("life %d", life) {
			life++
		}
		if life == 3 {
			return nil
		}
	}
	return fmt.Errorf("the published port: %w", last)
}
