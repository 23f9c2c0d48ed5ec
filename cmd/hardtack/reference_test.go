package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"hardtack/tool/msgtop"
)

var update = flag.Bool("update", false, "write docs/reference/hardtack.md")

// TestReference compares docs/reference/hardtack.md with what --help prints.
func TestReference(t *testing.T) {
	const file = "../../docs/reference/hardtack.md"
	var b bytes.Buffer
	b.WriteString(`# The hardtack command

<!-- Written by go test ./cmd/hardtack -run TestReference -update. -->

What ` + "`--help`" + ` prints, for each verb.

`)
	var pages []*cobra.Command
	var collect func(*cobra.Command)
	collect = func(c *cobra.Command) {
		pages = append(pages, c)
		for _, sub := range c.Commands() {
			if sub.IsAvailableCommand() && sub.Name() != "help" && sub.Name() != "completion" {
				collect(sub)
			}
		}
	}
	collect(newRoot())
	b.WriteString("| verb | |\n| --- | --- |\n")
	for _, c := range pages {
		fmt.Fprintf(&b, "| [%s](#%s) | %s |\n", c.CommandPath(), strings.ReplaceAll(c.CommandPath(), " ", "-"), c.Short)
	}
	for _, c := range pages {
		var help bytes.Buffer
		c.InitDefaultHelpFlag()
		c.SetOut(&help)
		if err := c.Help(); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "\n## %s\n\n```text\n%s\n```\n", c.CommandPath(), strings.TrimSpace(help.String()))
	}
	// A default that depends on the user.
	page := bytes.ReplaceAll(b.Bytes(), []byte(msgtop.Directory()), []byte("$XDG_RUNTIME_DIR/hardtack/debug"))
	if *update {
		if err := os.WriteFile(file, page, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	have, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(have, page) {
		t.Error("docs/reference/hardtack.md is stale: go test ./cmd/hardtack -run TestReference -update")
	}
}

// TestDocumented: the hardtack and make commands of the documents' console blocks exist,
// with their flags. What the blocks of sh say, test/outside runs.
func TestDocumented(t *testing.T) {
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	pages, _ := filepath.Glob("../../docs/*/*.md")
	more, _ := filepath.Glob("../../docs/*.md")
	pages = append(append(pages, more...), "../../README.md", "../../CONTRIBUTING.md")
	fenced := regexp.MustCompile("(?ms)^```console\n(.*?)^```$")
	found := 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range fenced.FindAllSubmatch(text, -1) {
			for line := range strings.Lines(string(block[1])) {
				line, isCommand := strings.CutPrefix(line, "$ ")
				if !isCommand {
					continue
				}
				line, _, _ = strings.Cut(line, " #")
				for _, command := range regexp.MustCompile(`[|&;]`).Split(line, -1) {
					args := strings.Fields(command)
					switch {
					case len(args) > 0 && args[0] == "hardtack":
						found++
						if err := known(args[1:]); err != nil {
							t.Errorf("%s: %s: %v", page, strings.TrimSpace(command), err)
						}
					case len(args) > 1 && args[0] == "make":
						found++
						if !regexp.MustCompile(`(?m)^([a-z- ]* )?` + args[1] + `( [a-z -]*)?:`).Match(makefile) {
							t.Errorf("%s: make has no target %s", page, args[1])
						}
					}
				}
			}
		}
	}
	if found < 20 {
		t.Errorf("only %d commands found", found)
	}
}

// known reports whether a command's verb and flags are there.
func known(args []string) error {
	cmd, rest, err := newRoot().Find(args)
	if err != nil {
		return err
	}
	if !cmd.HasParent() {
		return errors.New("no such verb")
	}
	if cmd.DisableFlagParsing {
		return nil
	}
	return cmd.ParseFlags(rest)
}
