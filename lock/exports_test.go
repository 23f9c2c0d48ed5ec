package lock

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"slices"
	"strings"
	"testing"
)

// What the package exports is what programs use: the nucleus's parts are in lock/core.
func TestExports(t *testing.T) {
	want := []string{"BigReader", "CLH", "Checker", "Elided", "Reader", "StoreRelease32", "StoreRelease64", "Ticket", "Transactions"}
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), ".go") || strings.HasSuffix(f.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), f.Name(), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for name, o := range file.Scope.Objects { // methods are none
			if ast.IsExported(name) && o.Kind != ast.Bad && !slices.Contains(got, name) {
				got = append(got, name)
			}
		}
	}
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Errorf("exported: %v, want %v", got, want)
	}
}
