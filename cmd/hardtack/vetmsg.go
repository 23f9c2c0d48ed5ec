package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/tools/go/analysis/unitchecker"

	"hardtack/tool/fault"
	"hardtack/tool/idl/exhaustive"
	"hardtack/tool/maxlive"
)

func newVetMsg() *cobra.Command {
	var strict bool
	cmd := &cobra.Command{
		Use:   "vet-msg [PACKAGE...]",
		Short: "Find type switches that leave out a message",
		Long: `Find type switches over the messages of an interface, as "hardtack idl" generates
them, that leave one out. Packages are named as for "go vet"; none is ./... .
A switch with a default clause is taken to mean what it says, but for --strict.

The command is a tool for go vet as well, which then looks at what has changed
only: go vet -vettool=$(which hardtack) ./... ; its flag is -exhaustive.strict.`,
		Example: `  hardtack vet-msg ./...
  go vet -vettool=$(which hardtack) ./...`,
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				args = []string{"./..."}
			}
			lines, err := exhaustive.Check("", strict, args...)
			if err != nil {
				return fault.Bad("%v", err)
			}
			for _, l := range lines {
				fmt.Println(l)
			}
			if len(lines) > 0 {
				return fault.With(fault.Host, "%d type switches leave out a message", len(lines))
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&strict, "strict", false, "report switches that have a default clause too")
	return cmd
}

// isVetTool says whether it is go vet that calls: it asks for -V=full and
// -flags, and then gives flags and one file that describes a package.
func isVetTool(args []string) bool {
	if len(args) == 0 {
		return false
	}
	last := args[len(args)-1]
	for _, a := range args[:len(args)-1] {
		if !strings.HasPrefix(a, "-") {
			return false
		}
	}
	return strings.HasSuffix(last, ".cfg") || len(args) == 1 && (last == "-V=full" || last == "-flags")
}

func runVetTool() { unitchecker.Main(exhaustive.Analyzer, maxlive.Analyzer) }
