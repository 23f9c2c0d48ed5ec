package maxlive

import (
	"errors"
	"fmt"
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
	"golang.org/x/tools/go/ssa"
	"golang.org/x/tools/go/ssa/ssautil"
)

// Config says what to analyse.
type Config struct {
	Dir        string            // of the module; empty is the working directory
	Env        []string          // beside the process's own
	BuildFlags []string          // as for go build
	Overlay    map[string][]byte // files that are not as on disk; BuildFlags has -overlay for the compiler
	Patterns   []string          // packages; all that they import is looked into as well

	Entries *regexp.Regexp // functions by their full name
	Table   string         // or: the functions in composite literals of this struct type
	Only    []string       // of the table, only the rows with these names, and not the points behind them
	Started bool           // also the functions that go statements start and that the runtime is given to call

	Models string // a file of models; none if empty
	Stack  uint64 // of a goroutine that is started, in bytes
	Panics bool   // count what is allocated on the way to a panic
}

// Problem is an error in the program that is analysed: something without a bound, or an
// annotation that is wrong.
type Problem struct {
	Pos  token.Position
	Text string
}

func (p Problem) String() string {
	if p.Pos.Filename == "" {
		return p.Text
	}
	return fmt.Sprintf("%v: %s", p.Pos, p.Text)
}

// Analysis is one program.
type Analysis struct {
	cfg      *Config
	fset     *token.FileSet
	classes  *classes
	notes    *annotations
	esc      *escapes
	models   map[string]*model
	problems []Problem

	prog       *ssa.Program
	targets    *targets
	packages   map[string]*types.Package
	loaded     []*packages.Package
	ampersands map[token.Pos]token.Pos
	assembly   map[string]bool // functions in assembly, by their full name
	noescape   map[token.Pos]bool
	linknames  map[token.Pos]string   // of functions that are another's
	provided   map[string]*types.Func // functions that are another package's by linkname
	pushed     map[token.Pos]bool     // where those are
	whole      bool                   // the program has a main
	asked      []*types.Package
	called     map[string]bool   // functions that assembly calls or takes the address of
	known      map[string]uint64 // sizes of types

	mapHeader, mapTable uint64

	files        map[*token.File]*ast.File
	functions    map[instanceKey]*function
	instances    map[*ssa.Function]int
	once         map[*ssa.Function]bool // what is given to sync.OnceValue and the like
	points       map[*ssa.Function]bool
	calledParams map[*ssa.Parameter]bool
	causes       []*Cause
}

func (a *Analysis) position(pos token.Pos) token.Position { return a.fset.Position(pos) }

const loadMode = packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports |
	packages.NeedDeps | packages.NeedTypes | packages.NeedSyntax | packages.NeedTypesInfo | packages.NeedTypesSizes | packages.NeedModule

// load reads the program and everything it imports, from source.
func load(cfg *Config) (*Analysis, error) {
	a := &Analysis{cfg: cfg, fset: token.NewFileSet(), notes: newAnnotations(), packages: map[string]*types.Package{},
		assembly: map[string]bool{}, noescape: map[token.Pos]bool{}, linknames: map[token.Pos]string{}, known: map[string]uint64{}, functions: map[instanceKey]*function{}, instances: map[*ssa.Function]int{}, calledParams: map[*ssa.Parameter]bool{}, points: map[*ssa.Function]bool{}, once: map[*ssa.Function]bool{}, called: map[string]bool{}, provided: map[string]*types.Func{}, pushed: map[token.Pos]bool{}}
	var err error
	if a.models, err = models(cfg.Models); err != nil {
		return nil, err
	}
	root, err := goroot(cfg)
	if err != nil {
		return nil, err
	}
	if a.classes, err = readClasses(root); err != nil {
		return nil, err
	}
	pkgs, err := packages.Load(&packages.Config{Mode: loadMode, Dir: cfg.Dir, Env: append(os.Environ(), cfg.Env...),
		BuildFlags: cfg.BuildFlags, Overlay: cfg.Overlay, Fset: a.fset}, append(slices.Clone(cfg.Patterns), "runtime")...) // runtime: its sizes
	if err != nil {
		return nil, err
	}
	if len(pkgs) == 0 {
		return nil, errors.New("no packages")
	}
	var files []*ast.File
	packages.Visit(pkgs, nil, func(p *packages.Package) {
		for _, e := range p.Errors {
			if err == nil {
				err = e
			}
		}
		a.packages[p.PkgPath] = p.Types
		a.loaded = append(a.loaded, p)
		files = append(files, p.Syntax...)
		for _, name := range p.OtherFiles {
			if strings.HasSuffix(name, ".s") {
				a.readAssembly(p.PkgPath, name)
			}
		}
		for _, f := range p.Syntax {
			a.notes.read(a.fset, f)
			a.readDirectives(p, f)
		}
	})
	if err != nil {
		return nil, err
	}
	for _, p := range pkgs {
		if p.PkgPath != "runtime" {
			a.asked = append(a.asked, p.Types)
		}
	}
	a.ampersands = ampersands(files)
	a.prog, _ = ssautil.AllPackages(pkgs, ssa.InstantiateGenerics)
	a.prog.Build()
	a.mapHeader = a.sizeOf("internal/runtime/maps", "Map")
	a.mapTable = a.sizeOf("internal/runtime/maps", "table")
	return a, nil
}

// goroot is the root of the toolchain that builds the program.
func goroot(cfg *Config) (string, error) {
	cmd := exec.Command("go", "env", "GOROOT")
	cmd.Dir, cmd.Env = cfg.Dir, append(os.Environ(), cfg.Env...)
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("go env GOROOT: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}

// readDirectives notes functions without a body that keep none of their arguments, and
// those that are another's by linkname, which may stand anywhere in the file.
func (a *Analysis) readDirectives(p *packages.Package, f *ast.File) {
	links := map[string]string{}
	for _, group := range f.Comments {
		for _, c := range group.List {
			if w := strings.Fields(c.Text); len(w) == 3 && w[0] == "//go:linkname" {
				links[w[1]] = w[2]
			}
		}
	}
	for _, d := range f.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok {
			continue
		}
		if fn.Body != nil {
			if to := links[fn.Name.Name]; to != "" && fn.Recv == nil && to != p.PkgPath+"."+fn.Name.Name {
				if obj, ok := p.TypesInfo.Defs[fn.Name].(*types.Func); ok {
					a.provided[to], a.pushed[fn.Name.Pos()] = obj, true
				}
			}
			continue
		}
		if to := links[fn.Name.Name]; to != "" && fn.Recv == nil {
			a.linknames[fn.Name.Pos()] = to
		}
		if fn.Doc == nil {
			continue
		}
		for _, c := range fn.Doc.List {
			if c.Text == "//go:noescape" {
				a.noescape[fn.Name.Pos()] = true
			}
		}
	}
}

var textSymbol = regexp.MustCompile(`(?m)^TEXT\s+([\w∕·.]*)·(\w+)`)

var symbolUse = regexp.MustCompile(`([\w∕.]*)·(\w+)(?:<\w+>)?\(SB\)`)

// readAssembly notes the functions that a file of assembly has. Those allocate nothing.
func (a *Analysis) readAssembly(path, name string) {
	text, err := os.ReadFile(name)
	if err != nil {
		return
	}
	for _, m := range textSymbol.FindAllStringSubmatch(string(text), -1) {
		if m[1] == "" || m[1] == strings.ReplaceAll(path, "/", "∕") {
			a.assembly[path+"."+m[2]] = true
		}
	}
	for _, m := range symbolUse.FindAllStringSubmatch(string(text), -1) {
		if m[1] == "" {
			m[1] = path
		}
		a.called[strings.ReplaceAll(m[1], "∕", "/")+"."+m[2]] = true
	}
}

// callGraph finds who may call whom.
func (a *Analysis) callGraph(entries []Entry) {
	t := newTargets(a.prog)
	t.opaque, t.stands, t.special = a.external, a.stand, special
	a.targets = t
	for _, e := range entries {
		t.reach(e.fn)
	}
	for _, fn := range a.roots() {
		t.reach(fn)
	}
	t.solve()
	for fn := range t.reachable {
		if isOnce(fn) {
			for _, it := range t.held(fn.Params[0]) {
				a.once[it.fn] = true
			}
		}
	}
	for { // what the runtime is given it may call
		n := len(t.reachable)
		for _, it := range t.held(escapedKey{}) {
			t.reach(it.fn)
		}
		if t.solve(); len(t.reachable) == n {
			break
		}
	}
}

// roots are the functions that nothing in the program calls: main, what initialises
// packages, what assembly calls, and what stands for functions of other packages. A
// program without main has all functions of the packages that were asked for.
func (a *Analysis) roots() []*ssa.Function {
	var out []*ssa.Function
	for _, p := range a.prog.AllPackages() {
		if isRuntime(p.Pkg.Path()) {
			continue
		}
		out = append(out, p.Func("init"))
		if p.Pkg.Name() == "main" && p.Func("main") != nil {
			out = append(out, p.Func("main"))
			a.whole = true
		}
	}
	for fn := range ssautil.AllFunctions(a.prog) {
		if fn.Pkg == nil || isRuntime(pkgOf(fn)) || len(fn.Blocks) == 0 || isTemplate(fn) {
			continue
		}
		if a.called[fn.String()] || fn.Object() != nil && a.pushed[fn.Object().Pos()] {
			out = append(out, fn)
		}
	}
	if !a.whole {
		out = append(out, a.library()...)
	}
	return out
}

// library is all functions and methods of the packages that were asked for.
func (a *Analysis) library() []*ssa.Function {
	asked := map[*types.Package]bool{}
	for _, p := range a.asked {
		asked[p] = true
	}
	var out []*ssa.Function
	for fn := range ssautil.AllFunctions(a.prog) {
		if fn.Pkg != nil && asked[fn.Pkg.Pkg] && !isTemplate(fn) {
			out = append(out, fn)
		}
	}
	return out
}

// stand is the function that a function without a body is by linkname, or itself.
func (a *Analysis) stand(fn *ssa.Function) *ssa.Function {
	obj := fn.Object()
	if len(fn.Blocks) > 0 || obj == nil || a.models[fn.String()] != nil {
		return fn
	}
	name := a.linknames[obj.Pos()]
	if to := a.provided[fn.String()]; to != nil {
		if g := a.prog.FuncValue(to); g != nil {
			return g
		}
	}
	if i := strings.LastIndex(name, "."); i > 0 && !isRuntime(name[:i]) {
		if p := a.prog.ImportedPackage(name[:i]); p != nil && p.Func(name[i+1:]) != nil {
			return p.Func(name[i+1:])
		}
	}
	return fn
}

// Entry is a function that a bound is asked for.
type Entry struct {
	Name  string
	Num   int64 // the first constant integer of its row in a table
	fn    *ssa.Function
	point bool
}

// entries finds the entry points.
func (a *Analysis) entries() ([]Entry, error) {
	var out []Entry
	if a.cfg.Table != "" {
		var err error
		if out, err = a.tableEntries(a.cfg.Table); err != nil {
			return nil, err
		}
	}
	if a.cfg.Entries != nil {
		for fn := range ssautil.AllFunctions(a.prog) {
			if fn.Synthetic == "" && fn.Parent() == nil && len(fn.TypeArgs()) == 0 && a.cfg.Entries.MatchString(fn.String()) {
				out = append(out, Entry{Name: fn.String(), Num: -1, fn: fn})
			}
		}
	}
	slices.SortFunc(out, func(x, y Entry) int { return strings.Compare(x.Name, y.Name) })
	if len(out) == 0 {
		return nil, errors.New("no entry points")
	}
	return out, nil
}

// tableEntries finds composite literals of a struct type, each with a name and a function.
func (a *Analysis) tableEntries(table string) ([]Entry, error) {
	i := strings.LastIndex(table, ".")
	if i < 0 || a.packages[table[:i]] == nil {
		return nil, fmt.Errorf("the program has no type %s", table)
	}
	obj := a.packages[table[:i]].Scope().Lookup(table[i+1:])
	if obj == nil {
		return nil, fmt.Errorf("the program has no type %s", table)
	}
	var out []Entry
	for _, p := range a.loaded {
		for _, f := range p.Syntax {
			ast.Inspect(f, func(n ast.Node) bool {
				if lit, ok := n.(*ast.CompositeLit); ok && types.Identical(p.TypesInfo.TypeOf(lit), obj.Type()) {
					if e, ok := a.row(p.TypesInfo, lit); ok && (len(a.cfg.Only) == 0 || slices.Contains(a.cfg.Only, e.Name)) {
						out = append(out, e)
					}
				}
				return true
			})
		}
	}
	return out, nil
}

// row is one row of a table: its first constant string, its first function, its first
// constant integer.
func (a *Analysis) row(info *types.Info, lit *ast.CompositeLit) (e Entry, ok bool) {
	numbered := false
	for _, x := range lit.Elts {
		if kv, ok := x.(*ast.KeyValueExpr); ok {
			x = kv.Value
		}
		if s, ok := stringConst(info, x); ok && e.Name == "" {
			e.Name = s
		}
		if v := info.Types[x].Value; v != nil && v.Kind() == constant.Int && !numbered {
			e.Num, numbered = constant.Int64Val(v)
		}
		if fn := funcOf(info, x); fn != nil && e.fn == nil {
			e.fn = a.prog.FuncValue(fn)
		}
	}
	return e, e.Name != "" && e.fn != nil
}

func stringConst(info *types.Info, x ast.Expr) (string, bool) {
	tv := info.Types[x]
	if tv.Value == nil || !isString(tv.Type) {
		return "", false
	}
	return strings.Trim(tv.Value.ExactString(), `"`), true
}

func funcOf(info *types.Info, x ast.Expr) *types.Func {
	switch x := ast.Unparen(x).(type) {
	case *ast.Ident:
		fn, _ := info.Uses[x].(*types.Func)
		return fn
	case *ast.SelectorExpr:
		fn, _ := info.Uses[x.Sel].(*types.Func)
		return fn
	}
	return nil
}

// compiled asks the compiler about the packages of the functions that are reached.
func (a *Analysis) compiled(reached map[*ssa.Function]bool) error {
	ask := map[string][]string{}
	paths := map[string]bool{}
	for fn := range reached {
		if p := pkgOf(fn); p != "" && p != "unsafe" {
			paths[p] = true
		}
	}
	for _, p := range a.loaded {
		if paths[p.PkgPath] {
			for _, f := range p.CompiledGoFiles {
				ask[p.PkgPath] = append(ask[p.PkgPath], filepath.Clean(f))
			}
		}
	}
	var err error
	a.esc, err = askCompiler(a.cfg, ask)
	return err
}

// pkgOf is the package in whose source a function is.
func pkgOf(fn *ssa.Function) string {
	for fn.Parent() != nil {
		fn = fn.Parent()
	}
	if o := fn.Origin(); o != nil {
		fn = o
	}
	if fn.Pkg != nil {
		return fn.Pkg.Pkg.Path()
	}
	if obj := fn.Object(); obj != nil && obj.Pkg() != nil {
		return obj.Pkg().Path()
	}
	return ""
}
