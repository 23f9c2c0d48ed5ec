// Package exhaustive is an analyser, in the manner of go vet, that finds type
// switches over a sealed message type which leave out a message.
//
// Go has no closed unions: an interface admits any type that has its methods.
// The packages that `hardtack idl` generates come near with a sealed interface,
// one that has a method called Marker, which no other package can write.
// Then all its members are declared in its own package, and a switch can be
// checked against them. So a message that is added to an interface file shows
// every switch that does not know it.
//
// Some messages go one way only: a client never receives a call, nor a server a
// reply. A message says so by methods called toServer and toClient. A switch that has
// a case for all that go one way is complete.
//
// A switch with a default clause handles the rest and is not reported, unless the flag
// -strict is set. A case nil is ignored.
package exhaustive

import (
	"go/ast"
	"go/types"
	"slices"
	"sort"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/passes/inspect"
	"golang.org/x/tools/go/ast/inspector"
)

// Marker is the method that seals an interface.
const Marker = "sealed"

// Analyzer reports switches that are not exhaustive.
var Analyzer = &analysis.Analyzer{
	Name:     "exhaustive",
	Doc:      "report type switches over a sealed message type that leave out a message",
	Requires: []*analysis.Analyzer{inspect.Analyzer},
	Run:      run,
}

var strict bool

func init() {
	Analyzer.Flags.BoolVar(&strict, "strict", false, "report switches that have a default clause too")
}

func run(pass *analysis.Pass) (any, error) {
	in := pass.ResultOf[inspect.Analyzer].(*inspector.Inspector)
	in.Preorder([]ast.Node{(*ast.TypeSwitchStmt)(nil)}, func(n ast.Node) {
		sw := n.(*ast.TypeSwitchStmt)
		named := subject(pass, sw)
		if named == nil {
			return
		}
		var cases []types.Type
		for _, clause := range sw.Body.List {
			list := clause.(*ast.CaseClause).List
			if list == nil && !strict {
				return
			}
			for _, e := range list {
				cases = append(cases, pass.TypesInfo.TypeOf(e))
			}
		}
		missing, who := left(named, cases)
		if len(missing) == 0 {
			return
		}
		names := make([]string, len(missing))
		for i, m := range missing {
			names[i] = types.TypeString(m, types.RelativeTo(pass.Pkg))
		}
		sort.Strings(names)
		pass.Reportf(sw.Pos(), "type switch on %s leaves out %s%s", types.TypeString(named, types.RelativeTo(pass.Pkg)), strings.Join(names, ", "), who)
	})
	return nil, nil
}

// directions are the methods that mark the messages of one direction, and who
// receives them.
var directions = []struct{ marker, who string }{
	{"toServer", ", which a server receives"},
	{"toClient", ", which a client receives"},
}

// left is which messages the cases leave out, and of whose: of those of one
// direction if the cases name no message that goes the other way only.
func left(sealed *types.Named, cases []types.Type) (missing []types.Type, who string) {
	all := members(sealed)
	missing = uncovered(all, cases)
	for _, d := range directions { // unless the type is that of one direction
		if marked(sealed, "toServer", sealed.Obj().Pkg()) || marked(sealed, "toClient", sealed.Obj().Pkg()) {
			break
		}
		var way, other []types.Type
		for _, m := range all {
			if marked(m, d.marker, sealed.Obj().Pkg()) {
				way = append(way, m)
			} else {
				other = append(other, m)
			}
		}
		if len(way) == 0 || named(other, cases) {
			continue
		}
		if rest := uncovered(way, cases); len(rest) < len(missing) {
			missing, who = rest, d.who
		}
	}
	return missing, who
}

// marked says that t has the method.
func marked(t types.Type, method string, pkg *types.Package) bool {
	found, _, _ := types.LookupFieldOrMethod(t, true, pkg, method)
	_, ok := found.(*types.Func)
	return ok
}

// uncovered are the messages that no case takes.
func uncovered(messages, cases []types.Type) (out []types.Type) {
	for _, m := range messages {
		if !slices.ContainsFunc(cases, func(t types.Type) bool { return covers(t, m) }) {
			out = append(out, m)
		}
	}
	return out
}

// named says that a case is one of the messages.
func named(messages, cases []types.Type) bool {
	return slices.ContainsFunc(messages, func(m types.Type) bool {
		return slices.ContainsFunc(cases, func(t types.Type) bool { return types.Identical(t, m) })
	})
}

// subject is the sealed type that sw switches on, or nil.
func subject(pass *analysis.Pass, sw *ast.TypeSwitchStmt) *types.Named {
	var x ast.Expr
	switch s := sw.Assign.(type) {
	case *ast.ExprStmt:
		x = s.X
	case *ast.AssignStmt:
		x = s.Rhs[0]
	}
	assert, ok := ast.Unparen(x).(*ast.TypeAssertExpr)
	if !ok {
		return nil
	}
	named, ok := types.Unalias(pass.TypesInfo.TypeOf(assert.X)).(*types.Named)
	if !ok || named.Obj().Pkg() == nil {
		return nil
	}
	iface, ok := named.Underlying().(*types.Interface)
	if !ok {
		return nil
	}
	for i := range iface.NumMethods() {
		if m := iface.Method(i); m.Name() == Marker && m.Pkg() == named.Obj().Pkg() {
			return named
		}
	}
	return nil
}

// members are the types that implement a sealed type, each as the pointer where
// its methods want one.
func members(sealed *types.Named) []types.Type {
	iface := sealed.Underlying().(*types.Interface)
	scope := sealed.Obj().Pkg().Scope()
	var out []types.Type
	for _, name := range scope.Names() {
		tn, ok := scope.Lookup(name).(*types.TypeName)
		if !ok || tn.IsAlias() || types.IsInterface(tn.Type()) {
			continue
		}
		if t := tn.Type(); types.Implements(t, iface) {
			out = append(out, t)
		} else if p := types.NewPointer(t); types.Implements(p, iface) {
			out = append(out, p)
		}
	}
	return out
}

// covers says whether a case of type t takes all of member.
func covers(t, member types.Type) bool {
	if i, ok := t.Underlying().(*types.Interface); ok {
		return types.Implements(member, i)
	}
	return types.Identical(t, member)
}
