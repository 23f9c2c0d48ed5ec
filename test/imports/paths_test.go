package imports

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestPaths: every file that docs/paths.md names is there, and so is every
// function that it names behind a file.
func TestPaths(t *testing.T) {
	root := filepath.Join("..", "..")
	text, err := os.ReadFile(filepath.Join(root, "docs", "paths.md"))
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`([a-z0-9]+(?:/[a-z0-9_]+)+\\.(?:go|s))`(?: `([A-Za-z.]+)`)?").FindAllStringSubmatch(string(text), -1)
	if len(named) < 25 {
		t.Fatalf("only %d files found in the text", len(named))
	}
	for _, m := range named {
		source, err := os.ReadFile(filepath.Join(root, m[1]))
		if err != nil {
			t.Errorf("%s: %v", m[1], err)
			continue
		}
		if m[2] == "" {
			continue
		}
		name := m[2]
		if i := strings.LastIndexByte(name, '.'); i >= 0 {
			name = name[i+1:]
		}
		if !regexp.MustCompile(`\b` + name + `\b`).Match(source) {
			t.Errorf("%s has no %s", m[1], m[2])
		}
	}
}
