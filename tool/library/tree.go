package main

import (
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
)

// ours is this module's path.
const ours = "hardtack"

// ListName is the file that lists the others.
const ListName = "FILES"

// tree is what will be written.
type tree struct {
	root     string            // of this module
	module   string            // new import path of the module; "": as it is
	without  string            // a folder that is left out
	files    map[string][]byte // by path, with slashes
	packages map[string]bool   // folders that are in
}

// addAll adds the packages of a folder and of all folders in it.
func (t *tree) addAll(folder string) error {
	return filepath.WalkDir(filepath.Join(t.root, folder), func(name string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case !e.IsDir():
			return nil
		case e.Name() == "testdata" || strings.HasPrefix(e.Name(), "_"):
			return fs.SkipDir
		}
		rel, err := filepath.Rel(t.root, name)
		if err != nil {
			return err
		}
		if rel = filepath.ToSlash(rel); rel == t.without {
			return fs.SkipDir
		}
		return t.addPackage(rel)
	})
}

// addPackage adds one package, if the folder has one, and what that imports from us,
// whatever the platform.
func (t *tree) addPackage(folder string) error {
	if t.packages[folder] {
		return nil
	}
	entries, err := os.ReadDir(filepath.Join(t.root, folder))
	if err != nil {
		return err
	}
	var files []string
	found := false
	for _, e := range entries {
		name := e.Name()
		isGo := strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go")
		if isGo || strings.HasSuffix(name, ".s") {
			files = append(files, path.Join(folder, name))
			found = found || isGo
		}
	}
	if !found {
		return nil
	}
	t.packages[folder] = true
	for _, name := range files {
		if err := t.addSource(name); err != nil {
			return err
		}
	}
	return nil
}

func (t *tree) addFile(name string) error {
	data, err := os.ReadFile(filepath.Join(t.root, filepath.FromSlash(name)))
	t.files[name] = data
	return err
}

// addSource adds a file of a package.
func (t *tree) addSource(name string) error {
	if err := t.addFile(name); err != nil || !strings.HasSuffix(name, ".go") {
		return err
	}
	src := t.files[name]
	if strings.Contains(string(src), "\n//go:embed ") {
		return fmt.Errorf("%s embeds files, which are not copied", name)
	}
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, name, src, parser.ImportsOnly)
	if err != nil {
		return err
	}
	var changed []byte
	from := 0
	for _, imp := range f.Imports {
		p, err := strconv.Unquote(imp.Path.Value)
		if err != nil {
			return err
		}
		folder, is := strings.CutPrefix(p, ours+"/")
		if !is {
			continue
		}
		if err := t.addPackage(folder); err != nil {
			return err
		}
		if t.module != "" {
			at := set.Position(imp.Path.Pos()).Offset
			changed = append(changed, src[from:at]...)
			changed = append(changed, strconv.Quote(t.module+"/"+folder)...)
			from = at + len(imp.Path.Value)
		}
	}
	t.files[name] = append(changed, src[from:]...)
	return nil
}

// write replaces what an earlier call has written to the directory.
func (t *tree) write(dir string) error {
	list := filepath.Join(dir, ListName)
	old, err := os.ReadFile(list)
	if errors.Is(err, fs.ErrNotExist) {
		if entries, _ := os.ReadDir(dir); len(entries) > 0 {
			return fmt.Errorf("%s is not empty, and has no %s of an earlier copy", dir, ListName)
		}
	} else if err != nil {
		return err
	}
	for _, name := range strings.Fields(string(old)) {
		if filepath.IsLocal(name) {
			os.Remove(filepath.Join(dir, name))
		}
	}
	var names []string
	for name := range t.files {
		names = append(names, name)
	}
	sort.Strings(names)
	t.files[ListName] = []byte(strings.Join(names, "\n") + "\n")
	for name, data := range t.files {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(file, data, 0o644); err != nil {
			return err
		}
	}
	return nil
}
