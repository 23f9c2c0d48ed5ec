package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"hardtack/tool/fault"
	"hardtack/tool/idl/exhaustive"
)

func newVetMsg() *cobra.Command {
	var strict bool
	cmd := &cobra.Command{
		Use:   "vet-msg [PACKAGE...]",
		Short: "Find type switches that leave out a message",
		Long: `Find type switches over the messages of an interface, as "hardtack idl" generates
them, that leave one out. Packages are named as for "go vet"; none is ./... .
A switch with a default clause is taken to mean what it says, but for --strict.

As part of go vet:

  go build -o vetmsg hardtack/tool/idl/exhaustive/cmd
  go vet -vettool=$PWD/vetmsg ./...`,
		Example: `  hardtack vet-msg ./...`,
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
