package maxlive

import (
	"go/ast"
	"go/token"

	"golang.org/x/tools/go/analysis"
)

// Analyzer is what go vet can look at, one package at a time: whether annotations are
// well formed and stand where something can need them. Bounds need the whole program.
var Analyzer = &analysis.Analyzer{
	Name: "maxlive",
	Doc:  "check the form and the place of //maxlive: annotations",
	Run:  vet,
}

func vet(pass *analysis.Pass) (any, error) {
	for _, f := range pass.Files {
		as := newAnnotations()
		as.read(pass.Fset, f)
		if len(as.all)+len(as.errors) == 0 {
			continue
		}
		tf := pass.Fset.File(f.Pos())
		at := func(p token.Position) token.Pos { return tf.LineStart(p.Line) + token.Pos(p.Column-1) }
		for _, p := range as.errors {
			pass.Reportf(at(p.Pos), "%s", p.Text)
		}
		loops, funcs := statements(pass.Fset, f)
		for lines, list := range as.byLine {
			for _, a := range list {
				if a.kind == "loop" && !loops[lines.line] {
					pass.Reportf(at(a.pos), "there is no loop on the line that this annotation is for")
				}
				if (a.kind == "recursion" || a.kind == "point") && !funcs[lines.line] {
					pass.Reportf(at(a.pos), "there is no function on the line that this annotation is for")
				}
			}
		}
	}
	return nil, nil
}

// statements are the lines on which loops and functions begin.
func statements(fset *token.FileSet, f *ast.File) (loops, funcs map[int]bool) {
	loops, funcs = map[int]bool{}, map[int]bool{}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ForStmt, *ast.RangeStmt:
			loops[fset.Position(n.Pos()).Line] = true
		case *ast.FuncDecl:
			funcs[fset.Position(n.Type.Pos()).Line] = true
		}
		return true
	})
	return loops, funcs
}
