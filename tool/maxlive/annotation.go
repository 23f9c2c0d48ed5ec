package maxlive

import (
	"errors"
	"fmt"
	"go/ast"
	"go/token"
	"slices"
	"strconv"
	"strings"
)

// annotation is a bound that a comment in the source gives.
type annotation struct {
	kind   string // loop, len, same, recursion, point
	n      uint64
	reason string
	pos    token.Position
	placed bool // there is something that it could be for
	used   bool // a bound needed it
}

const prefix = "//maxlive:"

// kinds are what an annotation can be for.
var kinds = []string{"loop", "len", "same", "recursion", "point"}

// parseAnnotation reads a comment; ok says whether it is an annotation at all.
func parseAnnotation(text string) (a annotation, ok bool, err error) {
	rest, ok := strings.CutPrefix(text, prefix)
	if !ok {
		return a, false, nil
	}
	head, reason, because := strings.Cut(rest, " because ")
	words := strings.Fields(head)
	plain := len(words) > 0 && (words[0] == "point" || words[0] == "same")
	if len(words) > 0 && slices.Contains(kinds, words[0]) && (!because || strings.TrimSpace(reason) == "") {
		return a, true, errors.New("the annotation does not say why: because REASON")
	}

	if len(words) == 1 && plain {
		return annotation{kind: words[0], reason: strings.TrimSpace(reason)}, true, nil
	}
	if len(words) != 2 || plain || !slices.Contains(kinds, words[0]) {
		return a, true, fmt.Errorf("want %sKIND N because REASON, where KIND is %s; point and same have no N", prefix, strings.Join(kinds, ", "))
	}
	n, err := strconv.ParseUint(words[1], 0, 40)
	if err != nil || n == 0 {
		return a, true, fmt.Errorf("%q is not a bound", words[1])
	}
	return annotation{kind: words[0], n: n, reason: strings.TrimSpace(reason)}, true, nil
}

// line is a line of a file.
type line struct {
	file string
	line int
}

// annotations are those of all files, by the line that they are for: the comment's own,
// or the next where the comment stands alone.
type annotations struct {
	byLine map[line][]*annotation
	all    []*annotation
	errors []Problem
}

func newAnnotations() *annotations { return &annotations{byLine: map[line][]*annotation{}} }

// read takes the annotations of a file.
func (as *annotations) read(fset *token.FileSet, f *ast.File) {
	var code map[int]bool
	for _, group := range f.Comments {
		for _, c := range group.List {
			a, ok, err := parseAnnotation(c.Text)
			if !ok {
				continue
			}
			pos := fset.Position(c.Pos())
			if err != nil {
				as.errors = append(as.errors, Problem{Pos: pos, Text: err.Error()})
				continue
			}
			if code == nil {
				code = codeLines(fset, f)
			}
			a.pos = pos
			as.all = append(as.all, &a)
			for _, n := range linesFor(code, pos.Line) {
				at := line{pos.Filename, n}
				as.byLine[at] = append(as.byLine[at], &a)
			}
		}
	}
}

// linesFor are the lines that a comment on line n is for.
func linesFor(code map[int]bool, n int) []int {
	if code[n] {
		return []int{n}
	}
	for i := n + 1; i < n+20; i++ {
		if code[i] {
			return []int{i}
		}
	}
	return nil
}

// codeLines are the lines on which something other than a comment begins.
func codeLines(fset *token.FileSet, f *ast.File) map[int]bool {
	lines := map[int]bool{}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n.(type) {
		case nil, *ast.Comment, *ast.CommentGroup:
			return false
		case *ast.File:
			return true
		}
		start := n.Pos()
		if d, ok := n.(*ast.FuncDecl); ok {
			start = d.Type.Pos() // not its comment
		} else if d, ok := n.(*ast.GenDecl); ok {
			start = d.TokPos
		}
		lines[fset.Position(start).Line] = true
		return true
	})
	return lines
}

// find returns the annotation of a kind for a line, marked as placed.
func (as *annotations) find(kind string, pos token.Position) *annotation {
	for _, a := range as.byLine[line{pos.Filename, pos.Line}] {
		if a.kind == kind {
			a.placed = true
			return a
		}
	}
	return nil
}

// bound returns the annotated bound for a line and marks it as used.
func (as *annotations) bound(kind string, pos token.Position) (uint64, bool) {
	a := as.find(kind, pos)
	if a == nil {
		return 0, false
	}
	a.used = true
	return a.n, true
}

// needless returns the annotations that no bound needed. Those of files that the entry
// points do not reach are left alone: another run may need them.
func (as *annotations) needless(reached func(file string) bool) []Problem {
	var out []Problem
	for _, a := range as.all {
		switch {
		case a.used || !reached(a.pos.Filename):
		case a.placed:
			out = append(out, Problem{Pos: a.pos, Text: "needless annotation: the bound is known without it, or nothing needs one"})
		default:
			out = append(out, Problem{Pos: a.pos, Text: "needless annotation: no " + a.kind + " that needs a bound on this line"})
		}
	}
	return out
}
