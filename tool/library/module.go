package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/version"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// oldestGo is the oldest Go that the libraries are written for.
const oldestGo = "1.26.0"

// moduleRoot is this module's directory, seen from the working directory.
func moduleRoot() (string, error) {
	out, err := goCommand("", "env", "GOMOD")
	if err != nil {
		return "", err
	}
	return filepath.Dir(strings.TrimSpace(string(out))), nil
}

func goCommand(dir string, args ...string) ([]byte, error) {
	cmd := exec.Command("go", args...)
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go %s: %w", args[0], err)
	}
	return out, nil
}

// A requirement is a module that the packages need.
type requirement struct{ Path, Version, GoVersion string }

func (t *tree) requirements() ([]requirement, error) {
	args := []string{"list", "-deps", "-json=Module"}
	for folder := range t.packages {
		args = append(args, path.Join(ours, folder))
	}
	out, err := goCommand(t.root, args...)
	if err != nil {
		return nil, err
	}
	var all []requirement
	for dec := json.NewDecoder(bytes.NewReader(out)); dec.More(); {
		var p struct{ Module *requirement }
		if err := dec.Decode(&p); err != nil {
			return nil, err
		}
		if m := p.Module; m != nil && m.Path != ours && !slices.Contains(all, *m) {
			all = append(all, *m)
		}
	}
	slices.SortFunc(all, func(a, b requirement) int { return strings.Compare(a.Path, b.Path) })
	return all, nil
}

// addModule adds a go.mod, and this module's go.sum.
func (t *tree) addModule(needs []requirement) error {
	goes, lines := oldestGo, ""
	for _, r := range needs {
		if version.Compare("go"+r.GoVersion, "go"+goes) > 0 {
			goes = r.GoVersion
		}
		lines += "\t" + r.Path + " " + r.Version + "\n"
	}
	t.files["go.mod"] = fmt.Appendf(nil, "module %s\n\ngo %s\n\nrequire (\n%s)\n", ours, goes, lines)
	return t.addFile("go.sum")
}
