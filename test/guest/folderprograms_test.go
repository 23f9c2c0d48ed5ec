package guest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// folderDiffers are tests of programs that print something else in a shared folder than on
// a disk of this machine's Linux, and why.
var folderDiffers = map[string]string{
	"files: fallocate":          "the protocol has no fallocate",
	"files: rename":             "the protocol has no RENAME_EXCHANGE",
	"files: rename directories": "the protocol has no RENAME_EXCHANGE",
	"files: getdents":           "QEMU names no types with owners=mapped",
	"files: stat":               "extended attributes take a block of the host's disk",
	"files: times":              "the host's clock is not the guest's",
	"files: tmpfile":            "the protocol has no O_TMPFILE",
	"fsinfo: RWF_NOWAIT":        "each read asks the host, and waits",
	"memory: private pages of a file that is truncated": "the protocol has no fallocate",
	"storage: holes":                         "the protocol tells nothing of holes",
	"storage: fallocate":                     "the protocol has no fallocate",
	"storage: mmap and read and write agree": "the protocol has no fallocate",
	"storage: O_DIRECT":                      "any length will do",
	"storage: names":                         "the protocol has no RENAME_EXCHANGE",
	"storage: files without a name":          "the protocol has no O_TMPFILE",
	"storage: extended attributes":           "none of size 0",
	"storage: statfs":                        "it is another file system",
	"storage: RLIMIT_FSIZE":                  "the protocol has no fallocate",
	"storage: drop_caches":                   "nothing is cached",
	"times: reads":                           "the host, not the guest, reads the file and dates that",
	"times: writes":                          "the host dates changes, and drops those that change nothing",
	"times: names":                           "the protocol has no RENAME_EXCHANGE",
}

// folderClocks are those of them that depend on how the host's clock and the guest's agree: they
// may print the same by chance.
var folderClocks = []string{"files: times", "times: reads", "times: writes"}

// TestFolderPrograms runs the programs that test files on tmpfs and ext4 in a shared folder.
func TestFolderPrograms(t *testing.T) {
	needGuest(t)
	if _, err := exec.LookPath("gcc"); err != nil {
		t.Skip("needs gcc: install gcc and libc6-dev")
	}
	t.Parallel()
	repo, dir := repository(t), t.TempDir()
	names := []string{"files", "fsinfo", "memory", "storage", "times"}
	if _, _, err := buildPrograms(repo, dir, "files", "fsinfo", "memory", "times"); err != nil {
		t.Fatal(err)
	}
	if err := cBuild(filepath.Join(dir, "programs/storage"), filepath.Join(repo, "test/guest/storage/storage.c")); err != nil {
		t.Fatal(err)
	}
	root := guestRoot(t, dir, "guesttest", "programs")
	want := storageOnHost(t, root, names)
	// With owners=mapped: with the host's owners QEMU 7.2 makes no FIFO (see howto/folders.md).
	out, err := inGuest(t, command(t, repo, dir), root, 8*time.Minute, []string{"--net", "none", "--user", "0:0",
		"-v", t.TempDir() + ":/mnt:owners=mapped"},
		"/guesttest", "-limit", "200s", "-tmp", "/mnt", "-run", strings.Join(names, ","), "/programs")
	got, _, done := parse(out)
	if !done {
		t.Fatalf("the machine ended: %v\n%s", err, tail(out, 60))
	}
	ran := 0
	for _, program := range names {
		if want == nil { // nothing to compare with
			break
		}
		if got[program] == nil || want[program] == nil {
			t.Errorf("%s did not run", program)
			continue
		}
		for _, name := range want[program].order {
			ran++
			w, g := want[program].tests[name], got[program].tests[name]
			full := program + ": " + name
			why, known := folderDiffers[full]
			switch {
			case g == nil:
				t.Errorf("%s: %s: did not run", program, name)
			case known && difference(w, g) == "" && !slices.Contains(folderClocks, full):
				t.Errorf("%s: %s prints what Linux prints; %q is no longer true", program, name, why)
			case !known && difference(w, g) != "":
				t.Errorf("%s: %s\n%s", program, name, difference(w, g))
			}
		}
	}
	t.Logf("%d tests, %d of them differ from a disk's", ran, len(folderDiffers))
}

// TestFolderBuilds clones with git in shared folders, and in the long form (make suites)
// builds a program and what it needs of Go's library there.
func TestFolderBuilds(t *testing.T) {
	needGuest(t)
	if testing.Short() {
		t.Skip("makes a disk and boots a guest with git, for a minute")
	}
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("needs git on this machine")
	}
	t.Parallel()
	repo, dir := repository(t), t.TempDir()
	tool := command(t, repo, dir)
	goroot, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, text string) {
		t.Helper()
		name = filepath.Join(dir, name)
		err := os.MkdirAll(filepath.Dir(name), 0o755)
		if err == nil {
			err = os.WriteFile(name, []byte(text), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for i := range 400 {
		write(fmt.Sprintf("repo/d%d/f%d", i%20, i), fmt.Sprintln("file", i))
	}
	git := func(args ...string) {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-C", filepath.Join(dir, "repo"), "-c", "user.name=who", "-c", "user.email=who@example.org"}, args...)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	git("init", "-q")
	git("add", ".")
	git("commit", "-qm", "files")
	write("work/hello/go.mod", "module hello\n")
	write("work/hello/main.go", "package main\n\nimport \"os\"\n\nfunc main() { os.Stdout.WriteString(\"hello from a folder\\n\") }\n")
	add := filepath.Join(dir, "add")
	if err := os.CopyFS(filepath.Join(add, "scripts"), os.DirFS(filepath.Join(repo, "test/guest/scripts"))); err != nil {
		t.Fatal(err)
	}
	disk := debianDisk(t, repo, tool, dir, "folder", add, "1G", []string{"bash", "coreutils", "diffutils", "findutils", "git"})
	flags := []string{"--memory", "1G", "--timeout", "40m", "-v", filepath.Join(dir, "repo") + ":/repo:ro",
		"-v", filepath.Join(dir, "work") + ":/srv", "-v", strings.TrimSpace(string(goroot)) + ":/usr/local/go:ro,cache=loose"}
	long := os.Getenv("HARDTACK_SUITES") != ""
	what, want := "git", "git: 2 commits"
	if long {
		what, want = "go", "hello from a folder"
	}
	var out console
	cmd := fromDisk(tool, disk, &out, "folder", what)
	cmd.Args = slices.Insert(cmd.Args, 2, flags...)
	if i := slices.Index(cmd.Args, "15m"); i > 0 {
		cmd.Args = slices.Delete(cmd.Args, i-1, i+1)
	}
	if err := cmd.Run(); err != nil || !strings.Contains(out.String(), want) {
		t.Fatalf("%v\n%s", err, tail(out.String(), 40))
	}
	// The host's git and the host itself find the same there.
	if out, err := exec.Command("git", "-c", "safe.directory=*", "-C", filepath.Join(dir, "work/copy"), "fsck", "--full", "--strict").CombinedOutput(); err != nil {
		t.Errorf("git fsck on the host: %v\n%s", err, out)
	}
	if !long {
		return
	}
	if out, err := exec.Command(filepath.Join(dir, "work/hello/hello")).CombinedOutput(); string(out) != "hello from a folder\n" {
		t.Errorf("what the guest built, on the host: %q, %v", out, err)
	}
}
