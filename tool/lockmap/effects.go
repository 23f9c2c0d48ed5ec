package lockmap

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

// function is one function or method, or a literal.
type function struct {
	file *file
	name string
	recv string // its receiver's name
	typ  *ast.FuncType
	body *ast.BlockStmt

	state              int
	acquires, releases []string // what it leaves locked, or unlocked for its caller
	unlessError        bool     // as in its contract
}

// States of a function in a pass.
const (
	unknown = iota
	underway
	known
)

// contract is what a function does to its caller's locks.
type contract struct {
	acquires, releases []string
	unlessError        bool // its last result is an error, with which it has locked nothing
}

// contracts are those of functions that lock or unlock only under a condition that
// their callers know: the flow of one function does not show it. Balanced ones leave
// everything as they found it.
var contracts = map[string]contract{
	"kernel/fd/eventfd.Read":          {}, // blocked has unlocked where it returns an error
	"kernel/fd/eventfd.Write":         {},
	"kernel/process/futex.lockBoth":   {acquires: []string{"x.mu"}}, // y may be x
	"kernel/process/futex.unlockBoth": {releases: []string{"x.mu"}},
	"kernel/fs/vfs.UnlinkAt":          {}, // it locks and unlocks under one condition
	"kernel/mm/vm.word":               {acquires: []string{"s.pt"}, unlessError: true},
	"kernel/syscall.vector":           {}, // its caller's done unlocks
	"kernel/fs/vfs.lockTwo":           {acquires: []string{"a.Inode.Mu"}},
	"kernel/fs/vfs.unlockTwo":         {releases: []string{"a.Inode.Mu"}},
}

// analysis is all functions together.
type analysis struct {
	fset      *token.FileSet
	files     []*file
	functions []*function
	literals  []*function            // of package-level variables
	byName    map[string]*function   // by the full name of the types package
	methods   map[string][]*function // by the name alone
	global    map[string]bool        // package-level variables: "dir.name"
}

func newAnalysis() *analysis {
	return &analysis{fset: token.NewFileSet(), byName: map[string]*function{}, methods: map[string][]*function{}, global: map[string]bool{}}
}

// passes is how often all functions are followed: once to learn, callees before callers,
// what each leaves locked, and then with that known for functions that call each other
// in a circle, too.
const passes = 3

func (a *analysis) solve() {
	for range passes {
		for _, f := range a.files {
			clear(f.held)
		}
		for _, f := range a.functions {
			f.state = unknown
		}
		for _, f := range a.functions {
			a.learn(f)
		}
	}
	for _, f := range a.literals {
		a.follow(f)
	}
}

// learn brings a function's summary up to date.
func (a *analysis) learn(f *function) {
	if f.state != unknown {
		return
	}
	f.state = underway
	acquires, releases := a.follow(f)
	if c, ok := contracts[f.file.dir+"."+f.name]; ok {
		acquires, releases, f.unlessError = c.acquires, c.releases, c.unlessError
	}
	f.acquires, f.releases, f.state = acquires, releases, known
}

// follow follows one function and returns its summary.
func (a *analysis) follow(f *function) (acquires, releases []string) {
	w := &walker{a: a, f: f}
	if end := w.block(f.body.List, newState()); end != nil {
		w.mark(f.body.Rbrace, f.body.Rbrace, end)
		w.leave(end)
	}
	if w.left == nil {
		return nil, nil
	}
	if w.wild && (w.left.locked() || w.locksAnything()) {
		w.mark(f.body.Pos(), f.body.End(), &state{held: keys{"goto": true}})
	}
	return sorted(w.left.held), sorted(w.left.freed)
}

// locksAnything reports whether a line of the function was marked.
func (w *walker) locksAnything() bool {
	first, last := w.a.fset.Position(w.f.body.Pos()).Line, w.a.fset.Position(w.f.body.End()).Line
	for n := first; n <= last; n++ {
		if w.f.file.held[n] {
			return true
		}
	}
	return false
}

func sorted(k keys) []string {
	var out []string
	for s := range k {
		if s != claim {
			out = append(out, s)
		}
	}
	slices.Sort(out)
	return out
}

// claim stands for a compare-and-swap and for an exclusive place in a queue, which may
// begin what others wait for: it counts as a lock up to the end of its function.
const claim = "claim"

// effects applies what the calls in n do to s.
func (w *walker) effects(n ast.Node, s *state) *state {
	called := map[ast.Expr]bool{}
	var visit func(n ast.Node) bool
	visit = func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			w.literal(n, s, called[n])
			return false
		case *ast.CallExpr:
			called[n.Fun] = true
			ast.Inspect(n.Fun, visit)
			for _, x := range n.Args {
				ast.Inspect(x, visit)
			}
			w.call(n, s)
			return false
		case *ast.SelectorExpr:
			if !called[n] && (n.Sel.Name == "Lock" || n.Sel.Name == "RLock") && s != nil {
				s.held["a method value"] = true
			}
		}
		return true
	}
	ast.Inspect(n, visit)
	return s
}

// literal follows a function literal by itself. What it leaves locked counts from here
// on; what it unlocks, only where it is called at once.
func (w *walker) literal(lit *ast.FuncLit, s *state, called bool) (releases []string) {
	acquires, releases := w.a.follow(&function{file: w.f.file, typ: lit.Type, body: lit.Body})
	for _, k := range acquires {
		s.acquire(k)
	}
	if called {
		for _, k := range releases {
			s.release(k)
		}
	}
	return releases
}

// primitive recognises a method of a lock.
func primitive(c *ast.CallExpr) (key, op string) {
	sel, ok := c.Fun.(*ast.SelectorExpr)
	if !ok || len(c.Args) != 0 {
		return "", ""
	}
	switch sel.Sel.Name {
	case "Lock", "RLock", "TryLock", "TryRLock", "Unlock", "RUnlock":
		return types.ExprString(sel.X), sel.Sel.Name
	}
	return "", ""
}

func tried(c *ast.CallExpr) (string, bool) {
	k, op := primitive(c)
	return k, op == "TryLock" || op == "TryRLock"
}

// call applies one call.
func (w *walker) call(c *ast.CallExpr, s *state) {
	if s == nil {
		return
	}
	switch key, op := primitive(c); op {
	case "Unlock", "RUnlock":
		s.release(key)
		return
	case "":
	default:
		s.acquire(key)
		return
	}
	if sel, ok := c.Fun.(*ast.SelectorExpr); ok && (strings.HasPrefix(sel.Sel.Name, "CompareAndSwap") || sel.Sel.Name == "AddExclusive") {
		s.held[claim] = true
		return
	}
	acquires, releases := w.summary(c)
	for _, k := range releases {
		s.release(k)
	}
	for _, k := range acquires {
		s.acquire(k)
	}
}

// deferred applies a defer statement.
func (w *walker) deferred(c *ast.CallExpr, s *state) *state {
	for _, x := range c.Args {
		s = w.effects(x, s)
	}
	if lit, ok := c.Fun.(*ast.FuncLit); ok {
		for _, k := range w.literal(lit, s, false) {
			s.promise(k)
		}
		return s
	}
	if key, op := primitive(c); op == "Unlock" || op == "RUnlock" {
		s.promise(key)
		return s
	}
	acquires, releases := w.summary(c)
	for _, k := range releases {
		s.promise(k)
	}
	for _, k := range acquires {
		s.held[k] = true
	}
	return s
}

// callees are the functions that a call may reach: the one that is named, or all methods
// of the name where it goes through an interface. A call of a variable is taken for
// balanced.
func (w *walker) callees(c *ast.CallExpr) (list []*function, on ast.Expr) {
	fun := ast.Unparen(c.Fun)
	if x, ok := fun.(*ast.IndexExpr); ok { // a generic function
		fun = x.X
	}
	var id *ast.Ident
	switch f := fun.(type) {
	case *ast.Ident:
		id = f
	case *ast.SelectorExpr:
		id, on = f.Sel, f.X
	default:
		return nil, nil
	}
	obj, ok := w.f.file.info.Uses[id].(*types.Func)
	if !ok {
		return nil, nil
	}
	obj = obj.Origin()
	if recv := obj.Signature().Recv(); recv != nil && types.IsInterface(recv.Type()) {
		return w.a.methods[obj.Name()], on
	}
	if f := w.a.byName[obj.FullName()]; f != nil {
		list = []*function{f}
	}
	return list, on
}

// summary is what a call may leave locked and what it surely unlocks, in the terms of
// the caller.
func (w *walker) summary(c *ast.CallExpr) (acquires, releases []string) {
	list, on := w.callees(c)
	for i, f := range list {
		w.a.learn(f)
		var released []string
		for _, k := range f.acquires {
			if f.state == underway { // it calls itself; what it leaves locked shows in the others
				break
			}
			acquires = append(acquires, w.inCaller(f, k, c, on))
		}
		for _, k := range f.releases {
			released = append(released, w.inCaller(f, k, c, on))
		}
		if i == 0 {
			releases = released
			continue
		}
		releases = slices.DeleteFunc(releases, func(k string) bool { return !slices.Contains(released, k) })
	}
	return acquires, releases
}

// inCaller says what a lock of a callee is called in the caller.
func (w *walker) inCaller(f *function, key string, c *ast.CallExpr, on ast.Expr) string {
	root, rest := splitKey(key)
	if root == f.recv && on != nil && root != "" {
		return types.ExprString(on) + rest
	}
	i := 0
	for _, p := range f.typ.Params.List {
		for _, n := range p.Names {
			if n.Name == root && i < len(c.Args) {
				return strings.TrimPrefix(types.ExprString(c.Args[i]), "&") + rest
			}
			i++
		}
		if len(p.Names) == 0 {
			i++
		}
	}
	if w.a.global[f.file.dir+"."+root] {
		return key
	}
	return "of " + f.name // nobody can unlock it by that name
}

// splitKey cuts the first identifier off.
func splitKey(key string) (root, rest string) {
	i := strings.IndexFunc(key, func(r rune) bool { return r == '.' || r == '[' || r == '(' })
	if i < 0 {
		return key, ""
	}
	return key[:i], key[i:]
}

// lose renames the locks of variables that get another value.
func (s *state) lose(lhs []ast.Expr) {
	if s == nil {
		return
	}
	for _, x := range lhs {
		id, ok := x.(*ast.Ident)
		if !ok {
			continue
		}
		delete(s.unless, id.Name)
		for _, set := range []keys{s.held, s.deferred} {
			for k := range set {
				if root, rest := splitKey(k); root == id.Name && rest != "" {
					delete(set, k)
					set["before "+k] = true
				}
			}
		}
	}
}

// assigned notes that a call's locks depend on the error that it gives.
func (w *walker) assigned(x *ast.AssignStmt, s *state) {
	if s == nil || len(x.Rhs) != 1 {
		return
	}
	c, ok := x.Rhs[0].(*ast.CallExpr)
	id, named := x.Lhs[len(x.Lhs)-1].(*ast.Ident)
	if !ok || !named {
		return
	}
	list, on := w.callees(c)
	if len(list) != 1 || !list[0].unlessError {
		return
	}
	locks := keys{}
	for _, k := range list[0].acquires {
		locks[w.inCaller(list[0], k, c, on)] = true
	}
	s.unless[id.Name] = locks
}

// failed splits a state where an error is compared with none.
func failed(x *ast.BinaryExpr, s *state) (yes, no *state, ok bool) {
	id, isName := x.X.(*ast.Ident)
	if s == nil || !isName || x.Op != token.NEQ && x.Op != token.EQL {
		return nil, nil, false
	}
	locks, depends := s.unless[id.Name]
	switch none := x.Y.(type) {
	case *ast.BasicLit:
		depends = depends && none.Value == "0"
	case *ast.Ident:
		depends = depends && none.Name == "nil"
	default:
		return nil, nil, false
	}
	if !depends {
		return nil, nil, false
	}
	yes, no = s.clone(), s.clone()
	if x.Op == token.EQL {
		yes, no = no, yes
	}
	for k := range locks {
		delete(yes.held, k)
		delete(yes.deferred, k)
	}
	if x.Op == token.EQL {
		yes, no = no, yes
	}
	return yes, no, true
}
