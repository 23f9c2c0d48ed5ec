package maxlive

import (
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"strings"
	"testing"

	"golang.org/x/tools/go/analysis/analysistest"
)

func TestAnalyzer(t *testing.T) { analysistest.Run(t, analysistest.TestData(), Analyzer, "vet") }

// TestSource: the generated table is a Go file with what the analysis found.
func TestSource(t *testing.T) {
	r, err := analysed()
	if err != nil {
		t.Fatal(err)
	}
	text, err := r.Source("reserve")
	if err != nil {
		t.Fatal(err)
	}
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, "table.go", text, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	if !ast.IsGenerated(f) {
		t.Error("the file does not say that it is generated")
	}
	p, err := (&types.Config{Importer: importer.Default()}).Check("reserve", fset, []*ast.File{f}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if p.Scope().Lookup("Table") == nil {
		t.Error("no Table")
	}
	for _, want := range []string{
		`{Name: "` + casesPath + `Stack", Peak: 0, Lasting: 0, Stacks: 0},`,
		`{Name: "` + casesPath + `List", Peak: 320, Lasting: 320, Stacks: 0, Classes: []Class{{32, 320, 320}}},`,
		`{Name: "` + casesPath + `Large", Peak: 40960, Lasting: 40960, Stacks: 0, Classes: []Class{{0, 40960, 40960}}},`,
		`{Name: "` + casesPath + `Reuse", Peak: 1024, Lasting: 0, Stacks: 0, Classes: []Class{{1024, 1024, 0}}},`,
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %s", want)
		}
	}
}

// TestSourceRefuses: there is no table where a bound is missing.
func TestSourceRefuses(t *testing.T) {
	r, err := analysedBad()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Source("reserve"); err == nil || !strings.Contains(err.Error(), "bad.Entry") {
		t.Errorf("a table in spite of a missing bound: %v", err)
	}
}
