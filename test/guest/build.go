// Package guest holds the system call tests: programs that run on Linux first
// and then, the same binaries, in a Hardtack guest, where they must print the
// same.
//
//	prog/NAME/    programs in Go        gt/        their frame
//	c/NAME.c      programs in C: what a Go program cannot do (c/gt.h is the frame)
//	guesttest/    the driver: process 1 of the guest
//	allocated/    what system calls take from the kernel's heap
package guest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// goBuild compiles a package of this module into a static program.
func goBuild(repo, out, pkg string) error {
	cmd := exec.Command("go", "build", "-o", out, pkg)
	cmd.Dir = repo
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build %s: %w\n%s", pkg, err, text)
	}
	return nil
}

// cBuild compiles a C file into a static program.
func cBuild(out, source string) error {
	cmd := exec.Command("gcc", "-static", "-O2", "-w", "-o", out, source, "-lpthread", "-lm")
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("gcc %s: %w\n%s", source, err, text)
	}
	return nil
}

// buildPrograms puts all test programs into dir/programs and the driver into
// dir/guesttest. It returns the names of the programs, and those it left out
// because no C compiler is there.
func buildPrograms(repo, dir string) (names, left []string, err error) {
	programs := filepath.Join(dir, "programs")
	if err := os.MkdirAll(programs, 0o755); err != nil {
		return nil, nil, err
	}
	if err := goBuild(repo, filepath.Join(dir, "guesttest"), "./test/guest/guesttest"); err != nil {
		return nil, nil, err
	}
	entries, err := os.ReadDir(filepath.Join(repo, "test", "guest", "prog"))
	if err != nil {
		return nil, nil, err
	}
	for _, e := range entries {
		if err := goBuild(repo, filepath.Join(programs, e.Name()), "./test/guest/prog/"+e.Name()); err != nil {
			return nil, nil, err
		}
		names = append(names, e.Name())
	}
	sources, err := filepath.Glob(filepath.Join(repo, "test", "guest", "c", "*.c"))
	if err != nil {
		return nil, nil, err
	}
	_, noGCC := exec.LookPath("gcc")
	for _, source := range sources {
		name := strings.TrimSuffix(filepath.Base(source), ".c")
		if noGCC != nil {
			left = append(left, name)
			continue
		}
		if err := cBuild(filepath.Join(programs, name), source); err != nil {
			return nil, nil, err
		}
		names = append(names, name)
	}
	return names, left, nil
}
