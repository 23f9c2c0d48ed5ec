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
// A switch with a default clause has said what it does with the rest and is not
// reported, unless the flag -strict is set. A case nil is neither wanted nor in
// the way.
package exhaustive

import (
	"go/ast"
	"go/types"
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
		missing := members(named)
		for _, clause := range sw.Body.List {
			list := clause.(*ast.CaseClause).List
			if list == nil && !strict {
				return
			}
			for _, e := range list {
				t := pass.TypesInfo.TypeOf(e)
				for i := 0; i < len(missing); i++ {
					if covers(t, missing[i]) {
						missing = append(missing[:i], missing[i+1:]...)
						i--
					}
				}
			}
		}
		if len(missing) == 0 {
			return
		}
		names := make([]string, len(missing))
		for i, m := range missing {
			names[i] = types.TypeString(m, types.RelativeTo(pass.Pkg))
		}
		sort.Strings(names)
		pass.Reportf(sw.Pos(), "type switch on %s leaves out %s", types.TypeString(named, types.RelativeTo(pass.Pkg)), strings.Join(names, ", "))
	})
	return nil, nil
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
