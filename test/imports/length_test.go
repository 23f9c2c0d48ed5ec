package imports

import (
	"go/ast"
	"strings"
	"testing"
)

// longest is how many lines a function may have, and longer how many functions of ours
// may have more. The number only falls: whoever splits one lowers it. What is left are
// loops and calls that are measured, where a split costs instructions, and
// measuring programs.
const (
	longest = 70
	longer  = 9
)

// TestLength counts long functions outside tests and generated code.
func TestLength(t *testing.T) {
	var found []string
	list := sources(t, "abi", "affinity", "arch", "bench", "cmd", "driver", "examples", "ext4", "idl", "ipc", "kernel",
		"lock", "msg", "nucleus", "overlay", "task", "test", "tool")
	for _, s := range list {
		if ast.IsGenerated(s.File) || strings.Contains(s.path, "/testdata/") {
			continue
		}
		for _, d := range s.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			if s.set.Position(f.End()).Line-s.set.Position(f.Pos()).Line >= longest {
				found = append(found, s.path+" "+f.Name.Name)
			}
		}
	}
	if len(found) > longer {
		t.Errorf("%d functions have more than %d lines, want %d at most: %q", len(found), longest, longer, found)
	}
}
