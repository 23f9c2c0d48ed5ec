package guest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	osbench "hardtack/bench/os"
)

// A reference is the Linux 6.1 that Hardtack follows, in a machine of its own. It has
// the last word where this machine's Linux and Hardtack disagree: this machine may run
// another release, and its page cache, ports and other processes are not the test's.
type reference struct {
	t    *testing.T
	root string   // with guesttest and programs
	disk bool     // programs run on ext4, not in memory
	cpus int      // 0: one
	args []string // more for QEMU
}

// run returns what the programs print, or nil with a note in the log if Linux cannot
// be booted here.
func (r reference) run(names []string) map[string]*section {
	dirs, err := osbench.FindDirs()
	if err != nil {
		r.t.Log(err)
		return nil
	}
	kernel, err := debianLinux(dirs)
	if err != nil {
		r.t.Logf("no Linux 6.1 to ask: %v", err)
		return nil
	}
	boot := osbench.Boot{OS: osbench.OnLinux, Root: r.tree(dirs.Repo, names), CPUs: max(r.cpus, 1), Memory: "1G", Machine: "microvm",
		Timeout: 10 * time.Minute, Args: append([]string{"-cpu", "max,la57=off,pku=off"}, r.args...)}
	if r.disk {
		boot.Disk, boot.Driver = r.emptyDisk(), "virtio"
	}
	m, err := boot.Start(dirs, kernel)
	if err != nil {
		r.t.Logf("no Linux 6.1 to ask: %v", err)
		return nil
	}
	_, _ = m.Wait() // its output says how far it came
	out := m.Output()
	sections, _, done := parse(out)
	if !done {
		r.t.Logf("Linux 6.1 did not reach the end:\n%s", tail(out, 30))
	}
	return sections
}

func (r reference) tree(repo string, names []string) osbench.Tree {
	tree := osbench.Tree{}
	file := func(to, from string) {
		data, err := os.ReadFile(from)
		if err != nil {
			r.t.Fatal(err)
		}
		tree.Add(to, 0o755, data)
	}
	init := filepath.Join(r.t.TempDir(), "init")
	if err := goBuild(repo, init, "./test/guest/linuxinit"); err != nil {
		r.t.Fatal(err)
	}
	file("bench/init", init)
	file("guesttest", filepath.Join(r.root, "guesttest"))
	for _, name := range names {
		file("programs/"+name, filepath.Join(r.root, "programs", name))
	}
	args := "-limit 200s "
	if r.disk {
		args += "-tmp /mnt "
	}
	tree.Add("bench/args", 0o644, []byte(args+"/programs"))
	return tree
}

func (r reference) emptyDisk() string {
	disk := filepath.Join(r.t.TempDir(), "reference.img")
	cmd := exec.Command(mke2fs(), "-q", "-t", "ext4", disk, "512M")
	if out, err := cmd.CombinedOutput(); err != nil {
		r.t.Fatalf("%v: %v\n%s", cmd.Args, err, out)
	}
	return disk
}

func mke2fs() string {
	if _, err := exec.LookPath("mke2fs"); err != nil {
		return "/sbin/mke2fs"
	}
	return "mke2fs"
}

// disagree are the programs of which a test fails here or prints something else in the guest.
func disagree(names []string, want, got map[string]*section) (list []string) {
	for _, name := range names {
		w, g := want[name], got[name]
		if w == nil || g == nil {
			continue // compare says so
		}
		for test, result := range w.tests {
			if other := g.tests[test]; other != nil && (result.end != "PASS" || difference(result, other) != "") {
				list = append(list, name)
				break
			}
		}
	}
	return list
}

// answers takes the reference's answer to each test in which it agrees with Hardtack and
// this machine's Linux does not.
func (r reference) answers(names []string, want, got map[string]*section) {
	ask := disagree(names, want, got)
	if len(ask) == 0 {
		return
	}
	said := r.run(ask)
	for _, name := range ask {
		for test, result := range want[name].tests {
			other := got[name].tests[test]
			if other == nil || result.end == "PASS" && difference(result, other) == "" || said[name] == nil {
				continue
			}
			if answer := said[name].tests[test]; answer != nil && answer.end == "PASS" && difference(answer, other) == "" {
				// One line without -v: where the log is cut, failures must not be what is lost.
				note := fmt.Sprintf("%s, %s: Linux 6.1 and Hardtack agree, this machine's Linux differs", name, strings.TrimSpace(test))
				if testing.Verbose() {
					note += ":\n" + difference(result, other)
				}
				r.t.Log(note)
				want[name].tests[test] = answer
			}
		}
		if said[name] != nil && said[name].verdict == got[name].verdict {
			want[name].verdict = got[name].verdict
		}
	}
}
