// Command coverage prints which share of the kernel's statements its tests run, by
// package: for each profile of "go test -coverprofile" or "go tool covdata textfmt", and
// for all of them together.
//
//	coverage [-min PERCENT] [-page FILE] NAME=PROFILE...
package main

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
)

func main() {
	least := flag.Float64("min", 0, "fail if all profiles together cover less than this `percentage`")
	page := flag.String("page", "", "write the table to this `file`, as a page of the documentation")
	flag.Parse()
	t, err := read(flag.Args())
	if err != nil {
		fmt.Fprintln(os.Stderr, "coverage:", err)
		os.Exit(1)
	}
	t.print(os.Stdout)
	if *page != "" {
		if err := os.WriteFile(*page, []byte(t.page()), 0o644); err != nil {
			fmt.Fprintln(os.Stderr, "coverage:", err)
			os.Exit(1)
		}
	}
	if got := t.total.percent(len(t.names)); got < *least {
		fmt.Fprintf(os.Stderr, "coverage: %.1f %% of the statements, want %.1f %%\n", got, *least)
		os.Exit(1)
	}
}

// sum is how many statements there are, and how many of them each profile and, last, all
// profiles together cover.
type sum struct {
	statements int
	covered    []int
}

func (s *sum) percent(i int) float64 {
	if s.statements == 0 {
		return 0
	}
	return 100 * float64(s.covered[i]) / float64(s.statements)
}

// table is the coverage by package.
type table struct {
	names    []string
	packages map[string]*sum
	total    *sum
}

// block is a run of statements, as a profile names it.
type block struct {
	statements int
	in         []bool // which profiles cover it
}

// measured are the packages that count. The tests' own tools do not.
func measured(pkg string) bool {
	rest, ours := strings.CutPrefix(pkg, "hardtack/")
	return ours && (strings.HasPrefix(rest, "kernel/") || rest == "nucleus" || strings.HasPrefix(rest, "nucleus/")) &&
		!strings.HasSuffix(rest, "test")
}

// read reads profiles, each given as NAME=FILE.
func read(args []string) (*table, error) {
	blocks := map[string]*block{}
	t := &table{packages: map[string]*sum{}}
	for i, arg := range args {
		name, file, ok := strings.Cut(arg, "=")
		if !ok {
			return nil, fmt.Errorf("%q: want NAME=PROFILE", arg)
		}
		t.names = append(t.names, name)
		f, err := os.Open(file)
		if err != nil {
			return nil, err
		}
		err = readProfile(f, blocks, i, len(args))
		f.Close()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
	}
	t.total = &sum{covered: make([]int, len(args)+1)}
	for at, b := range blocks {
		file, _, _ := strings.Cut(at, ":")
		pkg := path.Dir(file)
		if !measured(pkg) {
			continue
		}
		s := t.packages[pkg]
		if s == nil {
			s = &sum{covered: make([]int, len(args)+1)}
			t.packages[pkg] = s
		}
		s.add(b)
		t.total.add(b)
	}
	return t, nil
}

func (s *sum) add(b *block) {
	s.statements += b.statements
	for i, in := range b.in {
		if in {
			s.covered[i] += b.statements
		}
	}
	if slices.Contains(b.in, true) {
		s.covered[len(b.in)] += b.statements
	}
}

// readProfile adds profile i of n: lines of "FILE:FROM,TO STATEMENTS COUNT".
func readProfile(r io.Reader, blocks map[string]*block, i, n int) error {
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		f := strings.Fields(lines.Text())
		if len(f) == 2 && f[0] == "mode:" {
			continue
		}
		if len(f) != 3 {
			return fmt.Errorf("not a line of a profile: %q", lines.Text())
		}
		statements, err1 := strconv.Atoi(f[1])
		count, err2 := strconv.ParseUint(f[2], 10, 64)
		if err1 != nil || err2 != nil {
			return fmt.Errorf("not a line of a profile: %q", lines.Text())
		}
		b := blocks[f[0]]
		if b == nil {
			b = &block{statements: statements, in: make([]bool, n)}
			blocks[f[0]] = b
		}
		b.in[i] = b.in[i] || count > 0
	}
	return lines.Err()
}

// rows are the packages in the order of their names, then the total.
func (t *table) rows(row func(name string, s *sum)) {
	var pkgs []string
	for p := range t.packages {
		pkgs = append(pkgs, p)
	}
	slices.Sort(pkgs)
	for _, p := range pkgs {
		row(strings.TrimPrefix(p, "hardtack/"), t.packages[p])
	}
	row("total", t.total)
}

// columns are what a row shows: each profile, and together where there are several.
func (t *table) columns() []string {
	if len(t.names) == 1 {
		return t.names
	}
	return append(slices.Clone(t.names), "together")
}

func (t *table) print(w io.Writer) {
	fmt.Fprintf(w, "%-24s %10s", "package", "statements")
	for _, c := range t.columns() {
		fmt.Fprintf(w, " %10s", c)
	}
	fmt.Fprintln(w)
	t.rows(func(name string, s *sum) {
		fmt.Fprintf(w, "%-24s %10d", name, s.statements)
		for i := range t.columns() {
			fmt.Fprintf(w, " %8.1f %%", s.percent(i))
		}
		fmt.Fprintln(w)
	})
}

// page is the table in Markdown.
func (t *table) page() string {
	var b strings.Builder
	b.WriteString(intro)
	b.WriteString("| package | statements |")
	for _, c := range t.columns() {
		b.WriteString(" " + c + " |")
	}
	b.WriteString("\n|---|--:|" + strings.Repeat("--:|", len(t.columns())) + "\n")
	t.rows(func(name string, s *sum) {
		if name == "total" {
			name = "**total**"
		}
		fmt.Fprintf(&b, "| %s | %d |", name, s.statements)
		for i := range t.columns() {
			fmt.Fprintf(&b, " %.1f %% |", s.percent(i))
		}
		b.WriteByte('\n')
	})
	return b.String()
}

const intro = `# Test coverage

The share of the kernel's statements that the tests run. ` + "`make cover`" + ` measures the
host's tests (` + "`go test ./kernel/... ./nucleus/...`" + `, which boot nothing).
` + "`make cover-guest`" + ` adds tests of ` + "`test/guest`" + ` that boot a kernel that notes which of its
statements run ([0152](../decisions/0152-coverage-of-a-running-kernel.md)), and writes this
page.

A guest's notes are lost if it does not power off, because it crashed on purpose or was
killed. The statements that boot the machine before Go's runtime starts count as never run,
too.

`
