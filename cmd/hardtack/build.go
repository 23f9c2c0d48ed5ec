package main

import (
	"bufio"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"hardtack/overlay"
	"hardtack/tool/fault"
	"hardtack/tool/image"
)

func newBuild() *cobra.Command {
	var out, control string
	var stock, checkLocks, checkBounds, cover bool
	cmd := &cobra.Command{
		Use:   "build [--control WHICH] [--stock] [--check-locks] [--check-bounds] [--cover] [-o IMAGE]",
		Short: "Build the kernel image",
		Long: `Build the kernel with the stock Go toolchain, as an ELF file that QEMU boots
with -kernel (PVH). The same source gives the same image, bit for bit. Small
patches to Go's runtime, by which it counts what goroutines allocate and its
collector marks in small pieces, need exactly ` + overlay.Version + `. --stock leaves
them out.

It needs the source: the working directory, or the one that holds this command,
must be inside it. Without -o the image goes where "hardtack run" looks for it:
kernel.elf beside this command.

--control chooses how the nucleus, below the Go runtime, keeps CPUs apart:

  big    one lock around each operation: a queue lock, or test-and-set on virtual
         processors, which may not be running when their turn comes
  queue  big, with the queue lock on virtual processors too
  fine   operations run in parallel and lock the objects that they touch
  rtm    each operation is a hardware transaction; the kernel does not start on a
         processor without RTM
  none   no lock; the kernel starts one CPU only

The kernel prints its control at boot, on a terminal, and shows it in
/proc/hardtack/control.`,
		Example: `  hardtack build
  hardtack build --control fine -o /tmp/fine.elf`,
		Args: exactly(0, "no arguments"),
		RunE: func(*cobra.Command, []string) error {
			if _, err := image.ControlTag(control); err != nil {
				return err
			}
			if out == "" {
				var err error
				if out, err = defaultKernel(); err != nil {
					return err
				}
			}
			dir, err := sourceDir()
			if err != nil {
				return err
			}
			t, stop := newTidy()
			defer stop()
			if err := t.dir(); err != nil {
				return err
			}
			return t.create(out, func(tmp string) error {
				return image.Build(image.Options{Out: tmp, Dir: dir, Control: control, Stock: stock, CheckLocks: checkLocks, CheckBounds: checkBounds, Cover: cover})
			})
		},
	}
	cmd.Flags().StringVarP(&out, "output", "o", "", "write the image to this `file`")
	cmd.Flags().StringVar(&control, "control", "big", "the nucleus's concurrency `control`: none, big, queue, fine or rtm")
	cmd.Flags().BoolVar(&stock, "stock", false, "leave Go's runtime unchanged: /proc/hardtack/allocated counts nothing")
	cmd.Flags().BoolVar(&checkLocks, "check-locks", false, "for tests: check the order in which the kernel takes locks; the result is in /proc/hardtack/locks")
	cmd.Flags().BoolVar(&checkBounds, "check-bounds", false, "for tests: compare what each system call allocates with its bound; the result is in /proc/hardtack/bounds")
	cmd.Flags().BoolVar(&cover, "cover", false, "for tests: note which statements run; \"hardtack run\" leaves the notes in $GOCOVERDIR")
	return cmd
}

// defaultKernel is where build leaves the image.
func defaultKernel() (string, error) {
	exe, err := os.Executable()
	if err != nil {
		return "", err
	}
	return filepath.Join(filepath.Dir(exe), "kernel.elf"), nil
}

// installedKernel is where run finds the image: beside this command, else where
// "make install" puts it.
func installedKernel() (string, error) {
	beside, err := defaultKernel()
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(beside); err != nil {
		lib := filepath.Join(filepath.Dir(beside), "..", "lib", "hardtack", "kernel.elf")
		if _, err := os.Stat(lib); err == nil {
			return lib, nil
		}
	}
	return beside, nil
}

// sourceDir is the module's directory: above the working directory or above
// this command.
func sourceDir() (string, error) {
	var starts []string
	if wd, err := os.Getwd(); err == nil {
		starts = append(starts, wd)
	}
	if exe, err := os.Executable(); err == nil {
		starts = append(starts, filepath.Dir(exe))
	}
	for _, dir := range starts {
		for {
			if isModule(filepath.Join(dir, "go.mod")) {
				return dir, nil
			}
			up := filepath.Dir(dir)
			if up == dir {
				break
			}
			dir = up
		}
	}
	return "", fault.Bad("the kernel's source was not found; run this inside it")
}

func isModule(name string) bool {
	f, err := os.Open(name)
	if err != nil {
		return false
	}
	defer f.Close()
	s := bufio.NewScanner(f)
	for s.Scan() {
		if strings.TrimSpace(s.Text()) == "module hardtack" {
			return true
		}
	}
	return false
}
