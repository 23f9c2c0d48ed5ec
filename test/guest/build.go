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
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
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
func cBuild(out string, sources ...string) error {
	args := append([]string{"-static", "-O2", "-w", "-o", out}, sources...)
	if text, err := exec.Command("gcc", append(args, "-lpthread", "-lm")...).CombinedOutput(); err != nil {
		return fmt.Errorf("gcc %s: %w\n%s", strings.Join(sources, " "), err, text)
	}
	return nil
}

// programSource is a test program's name and its source: a file of C or a package.
type programSource struct{ name, source string }

func (p programSource) isC() bool { return strings.HasSuffix(p.source, ".c") }

func programSources(repo string) (list []programSource, err error) {
	entries, err := os.ReadDir(filepath.Join(repo, "test", "guest", "prog"))
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		list = append(list, programSource{e.Name(), "./test/guest/prog/" + e.Name()})
	}
	files, err := filepath.Glob(filepath.Join(repo, "test", "guest", "c", "*.c"))
	for _, file := range files {
		list = append(list, programSource{strings.TrimSuffix(filepath.Base(file), ".c"), file})
	}
	return list, err
}

// buildPrograms puts test programs into dir/programs, all or those in only, and the
// driver into dir/guesttest. It returns the names of the programs, and those it left out
// because no C compiler is there.
func buildPrograms(repo, dir string, only ...string) (names, left []string, err error) {
	programs := filepath.Join(dir, "programs")
	if err := os.MkdirAll(programs, 0o755); err != nil {
		return nil, nil, err
	}
	if err := goBuild(repo, filepath.Join(dir, "guesttest"), "./test/guest/guesttest"); err != nil {
		return nil, nil, err
	}
	all, err := programSources(repo)
	if err != nil {
		return nil, nil, err
	}
	_, noGCC := exec.LookPath("gcc")
	var (
		wait  sync.WaitGroup
		slots = make(chan bool, runtime.GOMAXPROCS(0))
		errs  = make([]error, len(all))
	)
	for i, p := range all {
		if len(only) > 0 && !slices.Contains(only, p.name) {
			continue
		}
		if p.isC() && noGCC != nil {
			left = append(left, p.name)
			continue
		}
		names = append(names, p.name)
		wait.Go(func() {
			slots <- true
			defer func() { <-slots }()
			out := filepath.Join(programs, p.name)
			if p.isC() {
				errs[i] = cBuild(out, p.source)
			} else {
				errs[i] = goBuild(repo, out, p.source)
			}
		})
	}
	wait.Wait()
	return names, left, errors.Join(errs...)
}
