package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"

	"github.com/spf13/cobra"

	"hardtack/tool/fault"
	"hardtack/tool/idl"
)

func newIDL() *cobra.Command {
	var (
		out     string
		imports []string
		lang    []string
		check   bool
		module  string
		bare    bool
	)
	cmd := &cobra.Command{
		Use:   "idl FILE.if...",
		Short: "Compile interface files to Go and C",
		Long: `Compile interface files, written in the language of Barrelfish's Flounder, to a Go
package and a C11 header and source file each. For interface NAME these are

  NAME/NAME.go              beside the interface file, or below -o
  NAME/c/NAME.h  NAME.c     to be compiled with the library in msg/c, which
                            reaches services of the Hardtack kernel, too, as
                            kernel:SERVICE

The Go package imports msg from the module hardtack. If your module has its own copy
of that library, --module gives the copy's import path.

The same input gives the same bytes. An error is reported as file:line:column with
what was expected, and nothing is written.`,
		Example: `  hardtack idl ping.if
  hardtack idl --lang c -i types.if -o build shop.if kitchen.if
  hardtack idl --check idl/*.if
  hardtack idl --module example.com/shop/hardtack shop.if`,
		Args: atLeast(1, "at least one interface file"),
		RunE: func(_ *cobra.Command, args []string) error {
			want, err := languages(lang, module)
			if err != nil {
				return err
			}
			want.NoTransport = bare
			all, err := compileAll(args, out, want, imports)
			if err != nil {
				return err
			}
			for _, f := range all {
				if err := putOutput(f, check); err != nil {
					return err
				}
			}
			return nil
		},
	}
	fl := cmd.Flags()
	fl.StringVarP(&out, "output", "o", "", "write below this `directory` (default: where the interface file is)")
	fl.StringArrayVarP(&imports, "import", "i", nil, "make the types of this `file` visible, as if it were imported (repeatable)")
	fl.StringSliceVar(&lang, "lang", []string{"go", "c"}, "the `languages` to write")
	fl.StringVar(&module, "module", idl.DefaultModule, "Go packages import msg from the module at this `path`")
	fl.BoolVar(&bare, "no-transport", false, "Go packages link no transport: the program chooses")
	fl.BoolVar(&check, "check", false, "write nothing; fail if a generated file is not up to date")
	return cmd
}

// languages reads --lang and --module.
func languages(lang []string, module string) (want idl.Languages, err error) {
	for _, l := range lang {
		switch l {
		case "go":
			want.Go = true
		case "c":
			want.C = true
		default:
			return want, fault.Bad("--lang %s: not go or c", l)
		}
	}
	if want.Module = module; !modulePath.MatchString(module) {
		return want, fault.Bad("--module %q: not a module path", module)
	}
	return want, nil
}

// compileAll compiles interface files; the results lie below out, or beside each file.
func compileAll(paths []string, out string, want idl.Languages, imports []string) (all []idl.Output, err error) {
	for _, path := range paths {
		files, err := idl.Compile(path, os.ReadFile, want, imports...)
		var wrong *idl.Error
		switch {
		case errors.As(err, &wrong), errors.Is(err, fs.ErrNotExist):
			return nil, fault.Bad("%v", err)
		case err != nil:
			return nil, err
		}
		dir := out
		if dir == "" {
			dir = filepath.Dir(path)
		}
		for _, f := range files {
			f.Path = filepath.Join(dir, f.Path)
			all = append(all, f)
		}
	}
	return all, nil
}

// modulePath is what Go takes for the path of a module.
var modulePath = regexp.MustCompile(`^[\w.~-]+(/[\w.~-]+)*$`)

// putOutput writes a file, if it differs, or only compares.
func putOutput(f idl.Output, check bool) error {
	old, err := os.ReadFile(f.Path)
	if err == nil && bytes.Equal(old, f.Data) {
		return nil
	}
	if check {
		return fmt.Errorf("%s is not up to date; run hardtack idl", f.Path)
	}
	if err := os.MkdirAll(filepath.Dir(f.Path), 0o777); err != nil {
		return err
	}
	return os.WriteFile(f.Path, f.Data, 0o666)
}
