package guest

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestFolders shares folders of this machine with a guest.
func TestFolders(t *testing.T) {
	needGuest(t)
	if _, err := exec.LookPath("gcc"); err != nil {
		t.Skip("needs gcc: install gcc and libc6-dev")
	}
	x := newTorturer(t)
	repo := repository(t)
	if err := cBuild(filepath.Join(x.root, "folder"), filepath.Join(repo, "test/guest/storage/folder.c")); err != nil {
		t.Fatal(err)
	}
	for _, cache := range []string{"none", "loose"} {
		t.Run("fsx "+cache, func(t *testing.T) {
			shared := t.TempDir()
			x.fsx(t, []string{"-v", shared + ":/mnt:cache=" + cache}, "-n", "2000", "-r", "2", "-p", "2", "-T", "2", "-x", "fallocate", "/mnt")
		})
	}
	t.Run("changes", func(t *testing.T) { changingFolder(t, x) })
}

// want is what test/guest/storage/folder.c prints.
const folderText = `a: "old", 3 bytes, 1 links
later: ENOENT
the link out leads nowhere
a: "new text", 8 bytes, 1 links
gone, open: "still here", 10 bytes, 0 links
gone: ENOENT
later: "later", 5 bytes, 1 links
d/x: ENOENT
e/x: "x", 1 bytes, 1 links
inside/secret is the guest's: yes
msync: 0
fsync: 0
lock: 0
lock of another: EAGAIN
said: "MAPPEDxt", 8 bytes, 1 links
setxattr: 0
getxattr: 5 value
removexattr: 0
1002 names
/ro/a: "read", 4 bytes, 1 links
create in /ro: EROFS
remount /ro: 0
create in /ro, remounted: EROFS
unlink in /ro, remounted: EROFS
/vanish/x: "x", 1 bytes, 1 links
/vanish/x: ENOENT
open, of a folder that vanished: "x", 1 bytes, 0 links
create in /vanish: ENOENT
list of /vanish: 0
end
`

// changingFolder changes a folder while a guest uses it, as the guest asks for it.
func changingFolder(t *testing.T, x *torturer) {
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Error(err)
		}
	}
	for _, d := range []string{"w/d", "w/many", "ro", "vanish"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write("secret", "of the host")
	write("w/a", "old")
	write("w/gone", "still here")
	write("w/d/x", "x")
	write("ro/a", "read")
	write("vanish/x", "x")
	check := func(err error) {
		if err != nil {
			t.Error(err)
		}
	}
	check(os.Symlink(filepath.Join(dir, "secret"), filepath.Join(dir, "w/out")))
	in := func(name string) string { return filepath.Join(dir, "w", name) }
	steps := []func(){
		func() {
			check(os.Symlink("/inside", in("inside")))
			write("w/a", "new text")
			check(os.Remove(in("gone")))
			write("w/later", "later")
			check(os.Rename(in("d"), in("e")))
		},
		func() {
			b, err := os.ReadFile(in("a"))
			check(err)
			write("w/said", string(b))
		},
		func() { check(os.RemoveAll(filepath.Join(dir, "vanish"))) },
	}
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		for i, do := range steps {
			for {
				if _, err := os.Stat(in(fmt.Sprintf("ask-%d", i+1))); err == nil {
					break
				}
				select {
				case <-stop:
					return
				case <-time.After(10 * time.Millisecond):
				}
			}
			do()
			write(fmt.Sprintf("w/done-%d", i+1), "")
		}
	}()
	out, err := inGuest(t, x.tool, x.root, 5*time.Minute, []string{"--net", "none", "--user", "0:0",
		"-v", filepath.Join(dir, "w") + ":/mnt", "-v", filepath.Join(dir, "ro") + ":/ro:ro",
		"--mount", "type=bind,source=" + filepath.Join(dir, "vanish") + ",target=/vanish"}, "/folder")
	if got := string(bytes.ReplaceAll([]byte(out), []byte("\r"), nil)); err != nil || got != folderText {
		t.Errorf("%v\ngot\n%swant\n%s", err, got, folderText)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "ro/a")); string(b) != "read" || err != nil {
		t.Errorf("the read-only folder has %q, %v", b, err)
	}
	if strings.Contains(out, "of the host") {
		t.Error("the guest has read a file outside of the folder")
	}
}
