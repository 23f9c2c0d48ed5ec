// Command deadcode lists the functions that no program of the module can reach, except
// those that a list allows. It is x/tools' deadcode with exceptions, which must not go
// stale.
//
//	deadcode EXCEPTIONS
//
// A line of the list is a function (PACKAGE.NAME) or a package with all below it
// (PACKAGE/...), a space, and why.
package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// analyzer is the program that finds them.
const analyzer = "golang.org/x/tools/cmd/deadcode@v0.51.0"

const format = `{{range .Funcs}}{{printf "%s %s.%s\n" .Position $.Path .Name}}{{end}}`

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: deadcode EXCEPTIONS")
		os.Exit(2)
	}
	problems, err := run(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, "deadcode:", err)
		os.Exit(1)
	}
	for _, p := range problems {
		fmt.Fprintln(os.Stderr, p)
	}
	if len(problems) > 0 {
		os.Exit(1)
	}
}

func run(list string) ([]string, error) {
	text, err := os.ReadFile(list)
	if err != nil {
		return nil, err
	}
	allowed, err := parse(string(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", list, err)
	}
	cmd := exec.Command("go", "run", analyzer, "-f", format, "./...")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", analyzer, err)
	}
	return allowed.check(out), nil
}

// exceptions says of each whether something unreachable was found that it allows.
type exceptions map[string]bool

func parse(text string) (exceptions, error) {
	e := exceptions{}
	for line := range strings.Lines(text) {
		name, why, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch {
		case name == "" || name == "#":
			continue
		case strings.TrimSpace(why) == "":
			return nil, fmt.Errorf("%s: why?", name)
		}
		e[name] = false
	}
	return e, nil
}

// check returns what is unreachable and not allowed, and what is allowed and not there.
func (e exceptions) check(found []byte) (problems []string) {
	for s := bufio.NewScanner(bytes.NewReader(found)); s.Scan(); {
		position, name, ok := strings.Cut(s.Text(), " ")
		if ok && !e.allow(name) {
			problems = append(problems, position+": nothing uses "+name)
		}
	}
	for name, used := range e {
		if !used {
			problems = append(problems, "an exception that nothing needs: "+name)
		}
	}
	return problems
}

// allow reports whether a function is allowed, and notes by what.
func (e exceptions) allow(name string) bool {
	allowed := false
	for x := range e {
		pkg, all := strings.CutSuffix(x, "/...")
		if x == name || all && (strings.HasPrefix(name, pkg+".") || strings.HasPrefix(name, pkg+"/")) {
			e[x], allowed = true, true
		}
	}
	return allowed
}
