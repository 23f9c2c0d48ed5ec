package imports

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the generated parts of the documents")

// TestTable compares the table in docs/architecture.md with the list that the test of
// directions holds.
func TestTable(t *testing.T) {
	const (
		file  = "../../docs/architecture.md"
		begin = "<!-- imports: written by go test ./test/imports -run TestTable -update -->\n"
		end   = "<!-- end of imports -->\n"
	)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(text), begin)
	_, tail, found := strings.Cut(rest, end)
	if !ok || !found {
		t.Fatal("docs/architecture.md has no place for the table")
	}
	want := head + begin + table() + end + tail
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if want != string(text) {
		t.Error("the table of imports in docs/architecture.md is stale: go test ./test/imports -run TestTable -update")
	}
}

// table is the list as Markdown.
func table() string {
	var b strings.Builder
	b.WriteString("| folder | may import |\n| --- | --- |\n")
	folders := make([]string, 0, len(may))
	for f := range may {
		folders = append(folders, f)
	}
	slices.Sort(folders)
	for _, f := range folders {
		to := "nothing of ours"
		if len(may[f]) > 0 {
			to = "`" + strings.Join(may[f], "`, `") + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s |\n", f, to)
	}
	return b.String()
}
