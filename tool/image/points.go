package image

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// What a function that is a point of reservation begins with in an image that compares
// allocations with bounds: what it allocates is not its callers'.
const (
	pointImport = `; import boundcheck "hardtack/kernel/base/checks"`
	pointBegin  = ` defer boundcheck.EndPoint(boundcheck.BeginPoint());`
)

// modelsFile names points, beside annotations in the source.
const modelsFile = "cmd/kernel/maxlive.models"

// pointFiles adds to an overlay the kernel's files with a count at each point.
func (o *Options) pointFiles(dir, list string, env []string) (string, error) {
	cmd := exec.Command("go", "list", "-deps", "-overlay", list, "-json=ImportPath,Dir,GoFiles,Standard", "hardtack/cmd/kernel")
	cmd.Dir, cmd.Env = o.Dir, env
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("go list: %w", err)
	}
	root, err := sourceRoot(o.Dir, env)
	if err != nil {
		return "", err
	}
	text, err := os.ReadFile(list)
	if err != nil {
		return "", err
	}
	w := pointWriter{dir: filepath.Join(dir, "points")}
	if w.points, err = readPoints(filepath.Join(root, modelsFile)); err != nil {
		return "", err
	}
	if err := json.Unmarshal(text, &w.all); err != nil {
		return "", err
	}
	if err := os.MkdirAll(w.dir, 0o755); err != nil {
		return "", err
	}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return "", err
		}
		if err := w.pkg(&p); err != nil {
			return "", err
		}
	}
	for name, seen := range w.points {
		if !seen {
			return "", fmt.Errorf("%s: no function %s", modelsFile, name)
		}
	}
	if text, err = json.Marshal(w.all); err != nil {
		return "", err
	}
	list = filepath.Join(dir, "points.json")
	return list, os.WriteFile(list, text, 0o644)
}

// listed is a package as go list has it.
type listed struct {
	ImportPath, Dir string
	GoFiles         []string
	Standard        bool
}

// pointWriter writes the files with points and puts them into a list.
type pointWriter struct {
	dir    string
	points map[string]bool // by name; true: found
	all    struct{ Replace map[string]string }
	made   int
}

// pkg writes those of one package.
func (w *pointWriter) pkg(p *listed) error {
	if p.Standard {
		return nil
	}
	for _, name := range p.GoFiles {
		file := filepath.Join(p.Dir, name)
		from := file
		if r := w.all.Replace[file]; r != "" {
			from = r
		}
		changed, err := withPoints(p.ImportPath, from, w.points)
		if err != nil {
			return err
		}
		if changed == nil {
			continue
		}
		to := filepath.Join(w.dir, fmt.Sprintf("%d.go", w.made))
		if err := os.WriteFile(to, changed, 0o644); err != nil {
			return err
		}
		w.all.Replace[file] = to
		w.made++
	}
	return nil
}

func sourceRoot(dir string, env []string) (string, error) {
	cmd := exec.Command("go", "list", "-m", "-f", "{{.Dir}}")
	cmd.Dir, cmd.Env = dir, env
	out, err := cmd.Output()
	return strings.TrimSpace(string(out)), err
}

// readPoints reads the names of points from a file of models.
func readPoints(name string) (map[string]bool, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	out := map[string]bool{}
	for _, line := range strings.Split(string(text), "\n") {
		if w := strings.Fields(line); len(w) > 2 && w[1] == "point" && w[2] == "because" {
			out[w[0]] = false
		}
	}
	return out, nil
}

// withPoints is a file's text with a count in each point that it has, nil if it has none.
func withPoints(path, file string, points map[string]bool) ([]byte, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, file, text, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	at := 0
	insert := func(pos token.Pos, s string) {
		n := fset.Position(pos).Offset
		out.Write(text[at:n])
		out.WriteString(s)
		at = n
	}
	for _, d := range f.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Body == nil || !isPointDecl(path, fn, points) {
			continue
		}
		if at == 0 {
			insert(f.Name.End(), pointImport)
		}
		insert(fn.Body.Lbrace+1, pointBegin)
	}
	if at == 0 {
		return nil, nil
	}
	out.Write(text[at:])
	return out.Bytes(), nil
}

// isPointDecl says whether a function is a point: by its annotation, its name, or its
// type and an exported name.
func isPointDecl(path string, fn *ast.FuncDecl, points map[string]bool) bool {
	owner := path
	if fn.Recv != nil {
		owner = receiverName(path, fn.Recv.List[0].Type)
	}
	is := false
	for _, name := range []string{owner + "." + fn.Name.Name, owner + ".*"} {
		if _, ok := points[name]; ok && (!strings.HasSuffix(name, "*") || fn.Recv != nil && fn.Name.IsExported()) {
			points[name], is = true, true
		}
	}
	if fn.Doc != nil {
		for _, c := range fn.Doc.List {
			is = is || strings.HasPrefix(c.Text, "//maxlive:point ")
		}
	}
	return is
}

// receiverName writes a receiver's type as go/ssa does.
func receiverName(path string, x ast.Expr) string {
	star := ""
	if s, ok := x.(*ast.StarExpr); ok {
		star, x = "*", s.X
	}
	args := ""
	switch g := x.(type) {
	case *ast.IndexExpr:
		if id, ok := g.Index.(*ast.Ident); ok {
			args = "[" + id.Name + "]"
		}
		x = g.X
	case *ast.IndexListExpr:
		var names []string
		for _, i := range g.Indices {
			if id, ok := i.(*ast.Ident); ok {
				names = append(names, id.Name)
			}
		}
		args, x = "["+strings.Join(names, ", ")+"]", g.X
	}
	id, ok := x.(*ast.Ident)
	if !ok {
		return path
	}
	return "(" + star + path + "." + id.Name + args + ")"
}
