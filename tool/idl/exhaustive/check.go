package exhaustive

import (
	"errors"
	"fmt"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/checker"
	"golang.org/x/tools/go/packages"
)

// Check analyses the packages that the patterns name, tests included, and
// returns a line for each finding: file:line:column: what. all asks for switches
// with a default clause too.
func Check(dir string, all bool, patterns ...string) ([]string, error) {
	pkgs, err := packages.Load(&packages.Config{
		Mode:  packages.LoadSyntax | packages.NeedModule,
		Dir:   dir,
		Tests: true,
	}, patterns...)
	if err != nil {
		return nil, err
	}
	var broken error
	packages.Visit(pkgs, nil, func(p *packages.Package) {
		for _, e := range p.Errors {
			if broken == nil {
				broken = e
			}
		}
	})
	switch {
	case broken != nil:
		return nil, broken
	case len(pkgs) == 0:
		return nil, errors.New("no packages")
	}
	strict = all
	graph, err := checker.Analyze([]*analysis.Analyzer{Analyzer}, pkgs, nil)
	if err != nil {
		return nil, err
	}
	var lines []string
	seen := map[string]bool{} // a package and its variant for tests share files
	for act := range graph.All() {
		if act.Err != nil {
			return nil, fmt.Errorf("%s: %w", act.Package.PkgPath, act.Err)
		}
		if !act.IsRoot {
			continue
		}
		for _, d := range act.Diagnostics {
			line := fmt.Sprintf("%v: %s", act.Package.Fset.Position(d.Pos), d.Message)
			if !seen[line] {
				seen[line] = true
				lines = append(lines, line)
			}
		}
	}
	return lines, nil
}
