package image

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	"hardtack/overlay"
	"hardtack/tool/lockmap"
)

// linesFile is what the table of lines takes the place of, and linesText the file with
// it.
const (
	linesFile = "lines.go"
	linesText = "package oops\n\nconst lines = `%s`\n"
)

// lockLines finds the lines of the kernel at which a lock may be held and adds them to
// an overlay, whose list it returns again. flags are go build's: what it compiles here
// it need not compile again.
func (o *Options) lockLines(dir, list string, env, flags []string) (string, error) {
	cmd := exec.Command("go", append(append([]string{"list", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles"}, flags...), "hardtack/cmd/kernel")...)
	var diagnostics bytes.Buffer
	cmd.Dir, cmd.Env, cmd.Stderr = o.Dir, env, &diagnostics
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("go list: %w\n%s", err, bytes.TrimSpace(diagnostics.Bytes()))
	}
	packages := lockmap.Packages{}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p lockmap.Package
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return "", fmt.Errorf("go list: %w", err)
		}
		packages[p.ImportPath] = p
	}
	table, err := lockmap.Table(packages)
	if err != nil {
		return "", fmt.Errorf("locks: %w", err)
	}
	file := filepath.Join(dir, "lines.go")
	if err := os.WriteFile(file, fmt.Appendf(nil, linesText, table), 0o644); err != nil {
		return "", err
	}
	target := filepath.Join(packages["hardtack/kernel/base/oops"].Dir, filepath.Base(linesFile))
	more := filepath.Join(dir, "lines.json")
	replace, err := json.Marshal(map[string]any{"Replace": map[string]string{target: file}})
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(more, replace, 0o644); err != nil {
		return "", err
	}
	all := filepath.Join(dir, "all.json")
	return all, overlay.Join(all, list, more)
}
