// Command library copies the Go libraries of this module, with all that they import
// from it and without their tests, to a directory that other modules can use:
//
//	go run ./tool/library -o DIR                           a module called hardtack
//	go run ./tool/library -o DIR -module example.com/x/ht  packages of another module
//	go run ./tool/library -o DIR -without msg/nats         not this folder
//
// The first is what `make install` leaves in share/hardtack/go. Its go.mod requires
// only what the libraries need, so it asks for an older Go than the kernel does. The
// second is for a copy inside somebody's own module: import paths are changed, and
// instead of a go.mod there are the arguments for `go mod edit`, on standard output.
//
// The directory holds a list of the files in it (ListName). They are replaced when
// the command runs again; a directory with other contents and no list is left alone.
package main

import (
	"flag"
	"fmt"
	"os"
)

// Libraries are the folders that are copied whole; what they import comes along.
var Libraries = []string{"affinity", "ipc", "lock", "msg", "task"}

func main() {
	out := flag.String("o", "", "write to this `directory`")
	module := flag.String("module", "", "change import paths from hardtack to this `path`")
	without := flag.String("without", "", "leave out this `folder`, msg/nats for example")
	flag.Parse()
	if *out == "" || flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	if err := run(*out, *module, *without); err != nil {
		fmt.Fprintln(os.Stderr, "library:", err)
		os.Exit(1)
	}
}

func run(out, module, without string) error {
	root, err := moduleRoot()
	if err != nil {
		return err
	}
	t := &tree{root: root, module: module, without: without, files: map[string][]byte{}, packages: map[string]bool{}}
	for _, name := range Libraries {
		if err := t.addAll(name); err != nil {
			return err
		}
	}
	if err := t.addFile("LICENSE"); err != nil {
		return err
	}
	needs, err := t.requirements()
	if err != nil {
		return err
	}
	if module == "" {
		if err := t.addModule(needs); err != nil {
			return err
		}
	} else {
		for _, r := range needs {
			fmt.Printf("-require=%s@%s\n", r.Path, r.Version)
		}
	}
	return t.write(out)
}
