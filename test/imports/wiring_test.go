package imports

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// source is a file of the tree that is no test.
type source struct {
	path string // from the project's folder
	*ast.File
	set     *token.FileSet
	imports map[string]string // of ours: their folders by the names that they have here
}

// sources parses what is in folders.
func sources(t *testing.T, folders ...string) (list []*source) {
	t.Helper()
	root := filepath.Join("..", "..")
	for _, folder := range folders {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			s := &source{set: token.NewFileSet(), imports: map[string]string{}}
			if s.path, err = filepath.Rel(root, path); err != nil {
				return err
			}
			if s.File, err = parser.ParseFile(s.set, path, nil, parser.ParseComments); err != nil {
				return err
			}
			for _, imp := range s.Imports {
				name, _ := strconv.Unquote(imp.Path.Value)
				to, ours := strings.CutPrefix(name, module)
				if !ours {
					continue
				}
				as := to[strings.LastIndexByte(to, '/')+1:]
				if imp.Name != nil {
					as = imp.Name.Name
				}
				s.imports[as] = to
			}
			list = append(list, s)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return list
}

// foreign returns the package and the name of what an expression names in another
// package of ours.
func (s *source) foreign(e ast.Expr) (pkg, name string) {
	sel, ok := e.(*ast.SelectorExpr)
	if !ok {
		return "", ""
	}
	x, ok := sel.X.(*ast.Ident)
	if !ok || x.Obj != nil {
		return "", ""
	}
	return s.imports[x.Name], sel.Sel.Name
}

// hooks returns the variables of type hook.Of, as folder.Name.
func hooks(list []*source) map[string]bool {
	found := map[string]bool{}
	isHook := func(s *source, e ast.Expr) bool {
		if call, ok := e.(*ast.CallExpr); ok {
			e = call.Fun
		}
		if index, ok := e.(*ast.IndexExpr); ok {
			e = index.X
		}
		pkg, _ := s.foreign(e)
		return strings.HasSuffix(pkg, "/hook")
	}
	for _, s := range list {
		for _, d := range s.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.VAR {
				continue
			}
			for _, spec := range g.Specs {
				v := spec.(*ast.ValueSpec)
				if isHook(s, v.Type) || len(v.Values) > 0 && isHook(s, v.Values[0]) {
					for _, n := range v.Names {
						found[filepath.Dir(s.path)+"."+n.Name] = true
					}
				}
			}
		}
	}
	return found
}

// TestWiring: packages of the kernel are joined in cmd/kernel/plug*.go. Nothing is
// joined by being imported: there are no init functions and no imports for effect.
func TestWiring(t *testing.T) {
	kernel := sources(t, "kernel", "nucleus", "driver", "cmd/kernel")
	known := hooks(kernel)
	if len(known) < 20 {
		t.Fatalf("only %d hooks found: the search is broken", len(known))
	}
	set := map[string]bool{}
	for _, s := range kernel {
		for _, imp := range s.Imports {
			if imp.Name != nil && imp.Name.Name == "_" && imp.Path.Value != `"unsafe"` && imp.Path.Value != `"embed"` {
				t.Errorf("%s imports %s for its effect", s.path, imp.Path.Value)
			}
		}
		plug := strings.HasPrefix(s.path, "cmd/kernel/plug")
		ast.Inspect(s.File, func(n ast.Node) bool {
			at := func() string { return s.path + ":" + strconv.Itoa(s.set.Position(n.Pos()).Line) }
			switch n := n.(type) {
			case *ast.FuncDecl:
				if n.Recv == nil && n.Name.Name == "init" {
					t.Errorf("%s: an init function; cmd/kernel/plug.go calls what is to be done at the start", at())
				}
			case *ast.AssignStmt:
				for _, l := range n.Lhs {
					pkg, name := s.foreign(l)
					if pkg != "" && strings.HasPrefix(pkg, "kernel/") {
						t.Errorf("%s: %s.%s is another package's variable", at(), pkg, name)
					}
					if sel, ok := l.(*ast.SelectorExpr); ok && sel.Sel.Name == "Call" {
						if pkg, name := s.foreign(sel.X); known[pkg+"."+name] {
							t.Errorf("%s: the hook %s.%s is set past Set", at(), pkg, name)
						}
					}
				}
			case *ast.CallExpr:
				sel, ok := n.Fun.(*ast.SelectorExpr)
				if !ok || sel.Sel.Name != "Set" {
					return true
				}
				pkg, name := s.foreign(sel.X)
				if pkg == "" {
					if x, ok := sel.X.(*ast.Ident); ok {
						pkg, name = filepath.Dir(s.path), x.Name
					}
				}
				if h := pkg + "." + name; known[h] {
					set[h] = true
					if !plug {
						t.Errorf("%s: the hook %s is set outside cmd/kernel/plug*.go", at(), h)
					}
				}
			}
			return true
		})
	}
	for h := range known {
		if !set[h] {
			t.Errorf("nobody sets the hook %s", h)
		}
	}
}
