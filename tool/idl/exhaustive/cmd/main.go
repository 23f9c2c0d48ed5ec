// Command cmd is the analyser by itself, for `go vet -vettool`:
//
//	go build -o vetmsg ./tool/idl/exhaustive/cmd
//	go vet -vettool=$PWD/vetmsg ./...
package main

import (
	"golang.org/x/tools/go/analysis/unitchecker"

	"hardtack/tool/idl/exhaustive"
)

func main() { unitchecker.Main(exhaustive.Analyzer) }
