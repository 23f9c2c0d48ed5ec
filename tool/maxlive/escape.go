package maxlive

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// message is what the compiler says of one expression.
type message struct {
	col  int
	what string // the expression as the compiler writes it, or the variable
	heap bool
}

// escapes are the compiler's answers: what goes to the heap and what stays on the stack.
type escapes struct {
	lines   map[line][]message
	moved   map[line][]message // variables
	inlined map[line][]int     // calls that were inlined: the columns
	files   map[string]bool    // files of the packages that were asked for
}

var diagnostic = regexp.MustCompile(`^(.+\.go):(\d+):(\d+): (.*)$`)

// askCompiler compiles the packages that patterns need and returns what the compiler
// says of those in ask. Go's cache keeps the answers of what has not changed.
func askCompiler(c *Config, ask map[string][]string) (*escapes, error) {
	args := []string{"list", "-export", "-deps", "-f", "{{.ImportPath}}"}
	args = append(args, c.BuildFlags...)
	e := &escapes{lines: map[line][]message{}, moved: map[line][]message{}, inlined: map[line][]int{}, files: map[string]bool{}}
	for path := range ask {
		args = append(args, "-gcflags="+path+"=-m")
	}
	cmd := exec.Command("go", append(append(args, "--"), c.Patterns...)...)
	cmd.Dir, cmd.Env = c.Dir, append(os.Environ(), c.Env...)
	cmd.Stdout = io.Discard
	var out bytes.Buffer
	cmd.Stderr = &out
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("go list -export: %w\n%s", err, lastLines(out.String()))
	}
	return e, e.parse(&out, ask)
}

func lastLines(s string) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return strings.Join(lines[max(0, len(lines)-5):], "\n")
}

// parse reads the compiler's messages. Names of files come from Go's cache and may be
// relative to any directory: their last parts tell which they are. A package of which
// nothing is said does not count as asked. What a package makes of another's generic
// functions is said where that package is compiled.
func (e *escapes) parse(r io.Reader, ask map[string][]string) error {
	s := bufio.NewScanner(r)
	s.Buffer(nil, 1<<20)
	byTail := map[string][]string{}
	for _, files := range ask {
		for _, f := range files {
			byTail[tail(f)] = append(byTail[tail(f)], f)
		}
	}
	var own []string
	for s.Scan() {
		if head, ok := strings.CutPrefix(s.Text(), "# "); ok {
			path, _, _ := strings.Cut(head, " ")
			own = ask[path]
			for _, f := range own {
				e.files[f] = true
			}
			continue
		}
		m := diagnostic.FindStringSubmatch(s.Text())
		if m == nil {
			continue
		}
		n, _ := strconv.Atoi(m[2])
		col, _ := strconv.Atoi(m[3])
		for _, f := range which(m[1], own, byTail) {
			e.note(line{f, n}, col, m[4])
		}
	}
	return s.Err()
}

// tail is a file's name with the last part of its directory.
func tail(name string) string {
	return filepath.Join(filepath.Base(filepath.Dir(name)), filepath.Base(name))
}

// which are the files that a name in a message can mean.
func which(name string, own []string, byTail map[string][]string) []string {
	switch filepath.Base(filepath.Dir(name)) {
	case ".", "..":
	default:
		return byTail[tail(name)]
	}
	for _, f := range own {
		if filepath.Base(f) == filepath.Base(name) {
			return []string{f}
		}
	}
	return nil
}

func (e *escapes) note(at line, col int, text string) {
	if v, ok := strings.CutPrefix(text, "moved to heap: "); ok {
		e.moved[at] = append(e.moved[at], message{col, v, true})
		return
	}
	if strings.HasPrefix(text, "inlining call to ") {
		e.inlined[at] = append(e.inlined[at], col)
		return
	}
	if v, ok := strings.CutSuffix(text, " escapes to heap"); ok {
		e.lines[at] = append(e.lines[at], message{col, v, true})
	} else if v, ok := strings.CutSuffix(text, " does not escape"); ok {
		e.lines[at] = append(e.lines[at], message{col, v, false})
	}
}

// variable says whether the variable that is declared there is on the heap. The
// compiler names those that are and is silent about the others.
func (e *escapes) variable(file string, n, col int, name string) bool {
	if !e.files[file] {
		return true
	}
	for _, m := range e.moved[line{file, n}] {
		if m.what == name && (m.col == col || col == 0) {
			return true
		}
	}
	return false
}

// shape tells the messages of one kind of expression from others on the same line.
type shape func(what string) bool

func isVariadic(what string) bool { return what == "... argument" }
func isFuncLit(what string) bool  { return what == "func literal" }
func isNew(what string) bool      { return strings.HasPrefix(what, "new(") }
func isMake(what string) bool     { return strings.HasPrefix(what, "make(") }
func isPointer(what string) bool  { return strings.HasPrefix(what, "&") }
func isLiteral(what string) bool  { return strings.HasSuffix(what, "{...}") && what[0] != '&' }
func isConcat(what string) bool   { return strings.Contains(what, " + ") }
func isAny(what string) bool      { return !isVariadic(what) && !isFuncLit(what) }

// onHeap says whether an expression of that shape is on the heap. It looks at the
// columns first, where the compiler may place it, then at all lines from first to last:
// there they must agree that nothing escapes.
func (e *escapes) onHeap(file string, first, last int, cols map[line][]int, is shape) bool {
	found := false
	for at, list := range cols {
		for _, m := range e.lines[at] {
			for _, col := range list {
				if m.col == col && is(m.what) {
					if m.heap {
						return true
					}
					found = true
				}
			}
		}
	}
	if found {
		return false
	}
	for n := first; n <= last; n++ {
		for _, m := range e.lines[line{file, n}] {
			if is(m.what) {
				if m.heap {
					return true
				}
				found = true
			}
		}
	}
	return !found
}

// inlinedOnStack says that the call was inlined and nothing in it is on the heap.
func (e *escapes) inlinedOnStack(file string, n, col int) bool {
	at := line{file, n}
	inlined := false
	for _, c := range e.inlined[at] {
		inlined = inlined || c == col
	}
	if !inlined {
		return false
	}
	for _, m := range slices.Concat(e.lines[at], e.moved[at]) {
		if m.col == col && m.heap {
			return false
		}
	}
	return true
}
