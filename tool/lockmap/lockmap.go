// Package lockmap finds the lines of the kernel's source at which a lock may be held.
//
// The kernel asks for them when a Go panic ends a system call
// (docs/decisions/0093-panics.md): only if no frame of the goroutine stands at such a
// line has the call left nothing behind that others wait for.
//
// The analysis is syntactic and errs to one side: a line that is not listed holds no
// lock; one that is listed may hold one. Each function is followed through its branches
// and loops with the set of locks that some path takes and does not release. A lock is
// known by the text of its expression ("s.mu"). What a function leaves locked, or unlocks
// for its caller, counts where it is called; a callee is found by its name, and where
// several have the name all count.
//
// A deferred Unlock runs before anybody can ask, but what the lock guards may be half
// changed: the lock counts as held up to the end of the function.
//
// Packages whose state is not guarded by mutexes alone are left out: a panic there
// always stops the machine. So does one in a file with the comment
//
//	//oops:stop REASON
package lockmap

import (
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// packages are those of which every line is judged. Of all others (drivers, the block
// layer, ext4, the page cache, frames, the scheduler's part in waiting, the TCP/IP stack, the nucleus)
// every line counts as holding a lock.
var packages = []string{
	"cmd/kernel",
	"kernel/base/accounts", "kernel/base/caller", "kernel/base/checks", "kernel/base/clocks",
	"kernel/base/creds", "kernel/base/ktime", "kernel/base/settings", "kernel/base/uio",
	"kernel/fd/epoll", "kernel/fd/eventfd", "kernel/fd/pipe", "kernel/fd/signalfd", "kernel/fd/timerfd",
	"kernel/fs/devfs", "kernel/fs/initramfs", "kernel/fs/nsfs", "kernel/fs/tmpfs", "kernel/fs/vfs",
	"kernel/mm/vm",
	"kernel/net/netlink", "kernel/net/sock", "kernel/net/unix",
	"kernel/process/elf", "kernel/process/futex", "kernel/process/posixtimer", "kernel/process/proc", "kernel/process/sysv",
	"kernel/pseudofs/procfs", "kernel/pseudofs/procnet", "kernel/pseudofs/sysfs",
	"kernel/syscall",
	"kernel/tty",
}

// stopMark begins the comment of a file in which every line counts.
const stopMark = "//oops:stop "

// file is one source file.
type file struct {
	name string // below the module's directory
	dir  string
	ast  *ast.File
	info *types.Info
	stop bool
	held map[int]bool // lines
}

// Table makes the table of the kernel that consists of list: a line for each file that was judged,
// with the ranges of its lines at which a lock may be held.
func Table(list Packages) (string, error) {
	a, err := load(list)
	if err != nil {
		return "", err
	}
	a.solve()
	var b strings.Builder
	for _, f := range a.files {
		b.WriteString(f.name)
		for _, r := range f.ranges(a.fset) {
			fmt.Fprintf(&b, " %d-%d", r[0], r[1])
		}
		b.WriteByte('\n')
	}
	return b.String(), nil
}

// ranges joins neighbouring lines.
func (f *file) ranges(fset *token.FileSet) [][2]int {
	if f.stop {
		return [][2]int{{1, fset.Position(f.ast.FileEnd).Line}}
	}
	lines := make([]int, 0, len(f.held))
	for n := range f.held {
		lines = append(lines, n)
	}
	slices.Sort(lines)
	var out [][2]int
	for _, n := range lines {
		if last := len(out) - 1; last >= 0 && out[last][1]+1 == n {
			out[last][1] = n
			continue
		}
		out = append(out, [2]int{n, n})
	}
	return out
}

// Packages are compiled packages: where the files with their types lie, by import path.
type Packages map[string]Package

// Package is one of them, as "go list -export -json" tells.
type Package struct {
	ImportPath, Dir, Export string
	GoFiles                 []string
}

const module = "hardtack/"

// load parses and checks the files that go into the kernel.
func load(list Packages) (*analysis, error) {
	a := newAnalysis()
	imports := importer.ForCompiler(a.fset, "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(list[path].Export)
	})
	for _, name := range packages {
		p, ok := list[module+name]
		if !ok {
			return nil, fmt.Errorf("package %s%s is not among those that go into the kernel", module, name)
		}
		texts := map[string]string{}
		for _, f := range p.GoFiles {
			text, err := os.ReadFile(filepath.Join(p.Dir, f))
			if err != nil {
				return nil, err
			}
			texts[f] = string(text)
		}
		if err := a.add(name, texts, imports); err != nil {
			return nil, err
		}
	}
	return a, nil
}

// add parses and checks a package.
func (a *analysis) add(dir string, texts map[string]string, imports types.Importer) error {
	var parsed []*ast.File
	var files []*file
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}, Defs: map[*ast.Ident]types.Object{}}
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		p, err := parser.ParseFile(a.fset, dir+"/"+name, texts[name], parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		f := &file{name: dir + "/" + name, dir: dir, ast: p, info: info, held: map[int]bool{}}
		for _, g := range p.Comments {
			for _, c := range g.List {
				f.stop = f.stop || strings.HasPrefix(c.Text, stopMark)
			}
		}
		parsed, files = append(parsed, p), append(files, f)
	}
	config := types.Config{Importer: imports, FakeImportC: true, Sizes: types.SizesFor("gc", "amd64")}
	if _, err := config.Check(module+dir, a.fset, parsed, info); err != nil {
		return err
	}
	for _, f := range files {
		a.files = append(a.files, f)
		for _, d := range f.ast.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				a.declare(f, d)
			case *ast.GenDecl:
				a.globals(f, d)
			}
		}
	}
	return nil
}

func (a *analysis) globals(f *file, d *ast.GenDecl) {
	for _, s := range d.Specs {
		v, ok := s.(*ast.ValueSpec)
		if !ok {
			continue
		}
		for _, n := range v.Names {
			a.global[f.dir+"."+n.Name] = true
		}
		for _, x := range v.Values { // functions in tables and hooks
			ast.Inspect(x, func(n ast.Node) bool {
				lit, ok := n.(*ast.FuncLit)
				if ok {
					a.literals = append(a.literals, &function{file: f, typ: lit.Type, body: lit.Body})
				}
				return !ok
			})
		}
	}
}

func (a *analysis) declare(f *file, d *ast.FuncDecl) {
	if d.Body == nil {
		return
	}
	fn := &function{file: f, name: d.Name.Name, typ: d.Type, body: d.Body}
	if d.Recv != nil {
		if n := d.Recv.List[0].Names; len(n) > 0 {
			fn.recv = n[0].Name
		}
	}
	if obj, ok := f.info.Defs[d.Name].(*types.Func); ok {
		a.byName[obj.FullName()] = fn
	}
	if d.Recv != nil {
		a.methods[fn.name] = append(a.methods[fn.name], fn)
	}
	a.functions = append(a.functions, fn)
}
