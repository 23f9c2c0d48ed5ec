package main

import (
	"bytes"
	"os"
	"regexp"

	"github.com/spf13/cobra"

	"hardtack/tool/fault"
	"hardtack/tool/image"
	"hardtack/tool/maxlive"
)

func newMaxlive() *cobra.Command {
	var c maxlive.Config
	var entries, format, pkg, tags, overlay, out string
	asImage := false
	cmd := &cobra.Command{
		Use:   "maxlive --entries REGEXP [PACKAGE...]",
		Short: "Bound the heap that calls of Go functions need",
		Long: `Find, for each function that --entries names, how many bytes allocated by one call
of it can be live at once, and how many stay live after it returns. The result is an
upper bound, found without running the program. A loop, a length or a recursion whose
bound cannot be derived is an error, unless a comment gives one:

  //maxlive:loop 64 because a name has at most 64 parts
  //maxlive:len 4096 because the caller checked it
  //maxlive:recursion 40 because a path crosses at most 40 links

A comment that is not needed is an error as well. Functions are named as in
"example.com/m/pkg.Func" and "(*example.com/m/pkg.Type).Method". Packages are named as
for "go build"; none is ./... . See docs/maxlive.md.`,
		Example: `  hardtack maxlive --entries '\.Handle[A-Z]' ./...
  hardtack maxlive --table hardtack/kernel/syscall.Call --format summary ./cmd/kernel`,
		RunE: func(_ *cobra.Command, args []string) error {
			if entries == "" && c.Table == "" {
				return fault.Bad("give --entries or --table")
			}
			var err error
			if entries != "" {
				if c.Entries, err = regexp.Compile(entries); err != nil {
					return fault.Bad("--entries: %v", err)
				}
			}
			if c.Patterns = args; len(args) == 0 {
				c.Patterns = []string{"./..."}
			}
			if tags != "" {
				c.BuildFlags = append(c.BuildFlags, "-tags="+tags)
			}
			if asImage {
				dir, err := os.MkdirTemp("", "hardtack-maxlive-*")
				if err != nil {
					return err
				}
				defer os.RemoveAll(dir)
				// Models stand for the runtime: its own patches do not count.
				if overlay, err = (&image.Options{Stock: true}).Overlay(dir); err != nil {
					return err
				}
				c.Env = image.Env()
			}
			if err := c.UseOverlay(overlay); err != nil {
				return fault.Bad("--overlay: %v", err)
			}
			return runMaxlive(&c, format, pkg, out)
		},
	}
	f := cmd.Flags()
	f.StringVar(&entries, "entries", "", "bound the functions whose full name matches this `regexp`")
	f.StringVar(&c.Table, "table", "", "bound the functions in composite literals of this struct `type`: import/path.Type")
	f.BoolVar(&c.Started, "started", false, "also bound what go statements start and what the runtime is given to call")
	f.StringVar(&format, "format", "text", "write `text`, json, go, summary or table")
	f.StringVar(&pkg, "package", "reserve", "the `name` of the package that --format go writes")
	f.StringVarP(&out, "output", "o", "", "write to this `file` instead of standard output")
	f.StringVar(&c.Models, "models", "", "read the costs of functions that are not analysed from this `file`")
	f.StringVar(&tags, "tags", "", "build tags, as for go build")
	f.StringVar(&overlay, "overlay", "", "replaced files, as for go build")
	f.Uint64Var(&c.Stack, "stack", 8192, "the most `bytes` that the stack of a started goroutine reaches")
	f.BoolVar(&asImage, "image", false, "with the environment and the changed TCP/IP stack that hardtack build gives the kernel")
	f.BoolVar(&c.Panics, "panics", false, "count what is allocated on the way to a panic")
	return cmd
}

func runMaxlive(c *maxlive.Config, format, pkg, out string) error {
	var to bytes.Buffer
	w := &to
	var write func(*maxlive.Result) error
	switch format {
	case "text":
		write = func(r *maxlive.Result) error { return r.Text(w) }
	case "json":
		write = func(r *maxlive.Result) error { return r.JSON(w) }
	case "go":
		write = func(r *maxlive.Result) error {
			text, err := r.Source(pkg)
			if err != nil {
				return fault.With(fault.Host, "no table: %v", err)
			}
			_, err = w.Write(text)
			return err
		}
	case "table":
		write = func(r *maxlive.Result) error {
			text, err := r.Numbered(pkg)
			if err != nil {
				return fault.With(fault.Host, "no table: %v", err)
			}
			_, err = w.Write(text)
			return err
		}
	case "summary":
		write = func(r *maxlive.Result) error { return r.Summary(w) }
	default:
		return fault.Bad("--format %s: want text, json, go, summary or table", format)
	}
	r, err := maxlive.Run(c)
	if err != nil {
		return fault.Bad("%v", err)
	}
	if err := write(r); err != nil {
		return err
	}
	if out == "" {
		_, err = os.Stdout.Write(to.Bytes())
	} else {
		err = os.WriteFile(out, to.Bytes(), 0o644)
	}
	if err != nil {
		return err
	}
	if !r.OK() && format != "table" {
		return fault.With(fault.Host, "%d of %d entry points have no bound, %d problems", len(r.Bounds)-r.Bounded(), len(r.Bounds), len(r.Problems))
	}
	return nil
}
