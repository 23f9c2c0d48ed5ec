package overlay

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Match compares the files that this program was built with to those of a source tree,
// whose folder overlay is dir: what the program changes in the runtime must be what that
// source counts on. A tree without the folder has nothing to differ.
func Match(dir string) error {
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, from := range []embed.FS{files, netstack} {
		err := fs.WalkDir(from, ".", func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			ours, err := from.ReadFile(name)
			if err != nil {
				return err
			}
			theirs, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			if err != nil || !bytes.Equal(ours, theirs) {
				return fmt.Errorf("%s is not what this program was built with: build hardtack anew", filepath.Join(dir, name))
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
