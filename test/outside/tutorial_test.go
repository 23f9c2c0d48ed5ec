package outside_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestTutorial follows docs/tutorial.md: it installs, builds the program and boots it.
// What installs packages and Go is compared with this machine instead.
func TestTutorial(t *testing.T) {
	if os.Getenv("HARDTACK_GUEST") == "" {
		t.Skip("HARDTACK_GUEST is not set: boots no guest")
	}
	for _, tool := range []string{"make", "gcc", "curl", "qemu-system-x86_64"} {
		if !has(tool) {
			t.Skipf("no %s", tool)
		}
	}
	page := filepath.Join(root(t), "docs/tutorial.md")
	at := t.TempDir()
	o := newOutside(t, at, "")
	o.env = append(o.env, "PREFIX="+at, "C_BUILD="+filepath.Join(at, "build"), "C_FLAGS=-O1")
	follow(t, page, o)
}

// TestTutorialInstalls: the tutorial installs the packages that make wants, and the
// release of Go that go.mod names.
func TestTutorialInstalls(t *testing.T) {
	installs := ""
	for _, b := range blocks(t, filepath.Join(root(t), "docs/tutorial.md")) {
		if b.lang == "sh" && b.name == "install" {
			installs += b.text
		}
	}
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join(root(t), name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	toolchain := regexp.MustCompile(`(?m)^toolchain (go[\d.]+)$`).FindStringSubmatch(read("go.mod"))
	if toolchain == nil || !strings.Contains(installs, toolchain[1]+".linux-amd64.tar.gz") {
		t.Errorf("go.mod wants %q", toolchain)
	}
	makefile := read("Makefile")
	for _, pkg := range []string{"qemu-system-x86", "gcc", "libc6-dev"} {
		if !strings.Contains(makefile, pkg) || !strings.Contains(installs, pkg) {
			t.Errorf("%s is not named by both", pkg)
		}
	}
}
