package abi

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

var (
	renewLinux  = flag.Bool("linux", false, "boot Linux 6.1 and keep its answers")
	renewKnown  = flag.Bool("known", false, "rewrite the list of known differences")
	keptAnswers = filepath.Join("testdata", "linux-6.1")
	knownList   = filepath.Join("testdata", "known")
)

// kept are Linux's answers.
func kept(t *testing.T) Answers {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(keptAnswers, "*.txt"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no answers of Linux in %s: %v", keptAnswers, err)
	}
	var blocks []block
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		b, err := parse(string(text))
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		blocks = append(blocks, b...)
	}
	return mustAnswers(t, blocks)
}

func mustAnswers(t *testing.T, blocks []block) Answers {
	t.Helper()
	all, err := answers(blocks)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func known(t *testing.T) []*reason {
	t.Helper()
	text, err := os.ReadFile(knownList)
	if err != nil {
		t.Fatal(err)
	}
	all, err := parseKnown(string(text))
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func needMachine(t *testing.T) {
	t.Helper()
	if os.Getenv("HARDTACK_GUEST") == "" {
		t.Skip("boots a Hardtack guest; set HARDTACK_GUEST=1")
	}
	for name, pkg := range map[string]string{"qemu-system-x86_64": "qemu-system-x86", "gcc": "gcc and libc6-dev"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("needs %s: install %s", name, pkg)
		}
	}
	if _, err := os.Stat("/sbin/mke2fs"); err != nil {
		if _, err := exec.LookPath("mke2fs"); err != nil {
			t.Skip("needs mke2fs: install e2fsprogs")
		}
	}
}

// linuxText is what the program prints on Linux. HARDTACK_ABI_LINUX names a file that
// already has it, of one table or of all.
func linuxText(t *testing.T) string {
	t.Helper()
	if file := os.Getenv("HARDTACK_ABI_LINUX"); file != "" {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	dir := t.TempDir()
	program := filepath.Join(dir, "abi")
	if err := build("guest", program); err != nil {
		t.Fatal(err)
	}
	text, err := onLinux(program, dir, 50*time.Minute)
	if err != nil || !strings.Contains(text, "abi: done") {
		t.Fatalf("%v\n%s", err, tail(text))
	}
	return text
}

// TestLinux renews what is kept of Linux, where that is asked for.
func TestLinux(t *testing.T) {
	if !*renewLinux {
		t.Skip("boots Debian's kernel; use -linux")
	}
	blocks, err := parse(linuxText(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range tablesOf(blocks) {
		of := slices.DeleteFunc(slices.Clone(blocks), func(b block) bool { return b.table != name })
		if err := os.WriteFile(filepath.Join(keptAnswers, name+".txt"), []byte(format(of)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d answers", len(mustAnswers(t, blocks)))
}

func tail(s string) string { return s[max(0, len(s)-3000):] }

// hardtackText is what the program prints on Hardtack. HARDTACK_ABI_TEXT names a file
// that already has it.
func hardtackText(t *testing.T) string {
	t.Helper()
	if file := os.Getenv("HARDTACK_ABI_TEXT"); file != "" {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	dir := t.TempDir()
	program, tool, kernel := filepath.Join(dir, "abi"), filepath.Join(dir, "hardtack"), filepath.Join(dir, "kernel.elf")
	if err := build("guest", program); err != nil {
		t.Fatal(err)
	}
	build := []string{tool, "build", "-o", kernel}
	if os.Getenv("HARDTACK_GUEST_COVER") != "" {
		build = append(build, "--cover")
	}
	for _, cmd := range [][]string{{"go", "build", "-o", tool, "./cmd/hardtack"}, build} {
		c := exec.Command(cmd[0], cmd[1:]...)
		c.Dir = "../.."
		if text, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", cmd, err, text)
		}
	}
	began := time.Now()
	text, err := onHardtack(tool, kernel, program, dir, 10*time.Minute)
	if err != nil {
		t.Fatalf("%v\n%s", err, tail(text))
	}
	t.Logf("the machine took %v", time.Since(began).Round(time.Second))
	return text
}

// unsteady is how many differences that are not known a run may have: a few answers
// depend on time and on addresses, a late signal or a stack taken for a count.
const unsteady = 20

// TestAnswers compares Hardtack's answers with Linux's.
func TestAnswers(t *testing.T) {
	needMachine(t)
	linux, reasons := kept(t), known(t)
	blocks, err := parse(hardtackText(t))
	if err != nil {
		t.Fatal(err)
	}
	all := differences(linux, mustAnswers(t, blocks))
	unknown, gone := check(all, reasons)
	t.Logf("%d cases, %d of them differ, %d of these are not known", len(linux), len(all), len(unknown))
	if *renewKnown {
		if err := os.WriteFile(knownList, []byte(shrink(reasons, unknown)), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	for i, d := range unknown {
		if i == 200 {
			t.Logf("and %d more", len(unknown)-i)
			break
		}
		t.Logf("not known: %v: Linux %s, Hardtack %s", d.Case, d.Linux, d.Hardtack)
	}
	for _, g := range gone {
		t.Logf("no longer differs; take it from %s (make abi-known): %s", knownList, g)
	}
	if len(unknown) > unsteady {
		t.Errorf("%d differences are not known", len(unknown))
	}
	if len(linux) < 20000 {
		t.Errorf("only %d cases", len(linux))
	}
}

func ExampleDifference() {
	d := Difference{Case{"files", "read", "pipe", "0"}, "0", "EAGAIN"}
	fmt.Println(d.Case, d.Linux, d.Hardtack)
	// Output: files read pipe 0 0 EAGAIN
}
