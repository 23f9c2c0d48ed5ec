package idl

import (
	"errors"
	"fmt"
	"go/ast"
	goparser "go/parser"
	gotoken "go/token"
	"go/types"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	gopackages "golang.org/x/tools/go/packages"
)

// Whatever shape an interface has, what is generated for it compiles, in Go and in C,
// without a warning. First come all interfaces of one message with at most one argument,
// then random ones.

// awkward are names that mean something to a compiler, a header or the generators.
var awkward = strings.Fields(`num call caps msg body ctx c m n b p s in_ err error errors context wire binary fmt io iter string len cap
	append copy make new nil true false iota any int func type range map chan go select defer var const package import
	send recv all serve run close handler client server conn adopt pair export connect channels interface_ to_server
	to_client sealed reply fail share next begin commit done end stats trace ready rebind register int32_t uint8_t char_
	struct enum union void static inline extern return sizeof signed volatile errno linux unix NULL EOF stdin assert bool
	typedef double auto ht ht_conn room closed given_up deliver events user raw flush main format get put take read size
	_x __y A a_b a1 Num Send reader writer data data_reader msg_writer offsetof asm typeof noreturn handle x_y`)

// sample makes interfaces.
type sample struct {
	*rand.Rand
	used  map[string]bool
	types []string // declared, each with what it is
}

func (g *sample) name() string {
	for {
		n := awkward[g.IntN(len(awkward))]
		if g.IntN(3) == 0 {
			n = fmt.Sprintf("%c%d", 'a'+g.IntN(26), g.IntN(100))
		}
		if !reserved[n] && !g.used[n] {
			g.used[n] = true
			return n
		}
	}
}

// scope starts a new space of names.
func (g *sample) scope() func() {
	old := g.used
	g.used = map[string]bool{}
	return func() { g.used = old }
}

var scalars = strings.Fields(`uint8 uint16 uint32 uint64 int8 int16 int32 int64 int bool char uintptr intptr size errval iref
	cycles coreid domainid coremask genpaddr genvaddr genfsize genoff rsrcid`)

// arg is an argument or a field; caps says how many caps may still come.
func (g *sample) arg(caps *int) string {
	n := g.name()
	switch t := scalars[g.IntN(len(scalars))]; g.IntN(12) {
	case 0:
		return fmt.Sprintf("String %s", n)
	case 1:
		return fmt.Sprintf("string %s[%d]", n, 1+g.IntN(100))
	case 2:
		return fmt.Sprintf("String %s[%s, %d]", n, g.name(), 1+g.IntN(5))
	case 3:
		return fmt.Sprintf("%s %s[%d]", t, n, 1+g.IntN(20))
	case 4:
		return fmt.Sprintf("%s %s[%s, %d]", t, n, g.name(), 1+g.IntN(2000))
	case 5:
		return fmt.Sprintf("%s %s[%s]", t, n, g.name())
	case 6:
		if *caps > 0 {
			*caps--
			return "cap " + n
		}
	case 7:
		if *caps > 2 {
			*caps -= 3
			return "give_away_cap " + n + "[3]"
		}
	case 8, 9, 10:
		if len(g.types) > 0 {
			d := g.types[g.IntN(len(g.types))]
			if g.IntN(4) == 0 {
				return fmt.Sprintf("%s %s[%s, %d]", d, n, g.name(), 1+g.IntN(4))
			}
			return d + " " + n
		}
	}
	return scalars[g.IntN(len(scalars))] + " " + n
}

// typ declares a type. Those with caps are not used again: an array of them is none.
func (g *sample) typ(b *strings.Builder) {
	n := g.name()
	switch g.IntN(6) {
	case 0:
		defer g.scope()()
		fmt.Fprintf(b, "  typedef enum { %s", g.name())
		for range g.IntN(4) {
			fmt.Fprintf(b, ", %s", g.name())
		}
		fmt.Fprintf(b, " } %s;\n", n)
	case 1:
		fmt.Fprintf(b, "  alias %s %s;\n", n, scalars[g.IntN(len(scalars))])
	case 2:
		fmt.Fprintf(b, "  typedef %s %s[%d];\n", scalars[g.IntN(len(scalars))], n, 1+g.IntN(9))
	case 3:
		fmt.Fprintf(b, "  typedef String %s[%d];\n", n, 1+g.IntN(50))
	default:
		none := 0
		func() {
			defer g.scope()()
			b.WriteString("  typedef struct {")
			for range 1 + g.IntN(4) {
				fmt.Fprintf(b, " %s;", g.arg(&none))
			}
		}()
		fmt.Fprintf(b, " } %s;\n", n)
	}
	g.types = append(g.types, n)
}

// iface is an interface of up to so many messages.
func (g *sample) iface(name string) string {
	g.used, g.types = map[string]bool{}, nil
	for _, s := range scalars { // a file may declare some of them again, which is tested elsewhere
		g.used[s] = true
	}
	g.used["String"], g.used["string"], g.used["cap"] = true, true, true
	var b strings.Builder
	fmt.Fprintf(&b, "/* binary. fmt. io. iter. wire. */ interface %s \"fmt. or wire.\" {\n", name)
	for range g.IntN(4) {
		g.typ(&b)
	}
	for range g.IntN(3) * g.IntN(2) {
		fmt.Fprintf(&b, "  error %s%s;\n", g.name(), []string{"", ` "binary. */ text."`}[g.IntN(2)])
	}
	for range 1 + g.IntN(5) {
		key := []string{"message", "call", "response", "rpc"}[g.IntN(4)]
		fmt.Fprintf(&b, "  %s %s(", key, g.name())
		func() {
			defer g.scope()()
			caps := 5
			for i := range g.IntN(4) {
				if i > 0 {
					b.WriteString(", ")
				}
				if key == "rpc" {
					b.WriteString([]string{"in ", "out "}[g.IntN(2)])
				}
				b.WriteString(g.arg(&caps))
			}
		}()
		b.WriteString(");\n")
	}
	return b.String() + "};\n"
}

// simplest are the interfaces of one message with at most one argument, in each
// direction, and of two, since what one needs the other may not.
func simplest() (out []string) {
	args := []string{"", "String a", "string a[9]", "String a[n, 3]", "cap a", "cap a[3]", "e a", "e a[2]", "s a", "s a[n, 3]", "v a", "v a[n, 3]", "k a"}
	for _, t := range scalars {
		args = append(args, t+" a", t+" a[4]", t+" a[n, 5]")
	}
	const decls = "typedef enum { X } e; typedef struct { uint8 p; } s; typedef struct { String p[5]; e q; } v; typedef struct { cap p; } k;"
	add := func(body string) {
		out = append(out, fmt.Sprintf("interface i%d {\n%s\n%s\n};\n", len(out), decls, body))
	}
	for _, a := range args {
		for _, key := range []string{"message", "response"} {
			add(fmt.Sprintf("%s m(%s);", key, a))
		}
		if a == "" {
			add("call m();")
			add("rpc m();")
			add("error bad; rpc m();")
			add("error bad; message m();")
			add("message m(); message o();")
			add("response m(); rpc o();")
			add("response __y(uint8 a); message x_y(uint8 b); message room(); message room_msg();") // names that C has to change
			continue
		}
		add(fmt.Sprintf("rpc m(in %s);", a))
		add(fmt.Sprintf("rpc m(out %s);", a))
		add(fmt.Sprintf("message o(); rpc m(in %s, out uint32 z);", a))
	}
	return out
}

// generated is what became of an interface.
type generated struct {
	src       string
	goCode    []byte
	header, c []byte
	cName     string
}

// generate compiles interfaces; those in which two names collide are left out.
func generate(t *testing.T, sources []string) (out []generated) {
	t.Helper()
	for _, src := range sources {
		g := generated{src: src}
		files, err := Compile("f.if", files(map[string]string{"f.if": src}), Languages{Go: true, C: true})
		var e *Error
		if errors.As(err, &e) && strings.Contains(e.Msg, "would be called") {
			continue
		}
		if err != nil {
			t.Fatalf("%v\n%s", err, src)
		}
		for _, f := range files {
			switch filepath.Ext(f.Path) {
			case ".go":
				g.goCode = f.Data
			case ".h":
				g.header, g.cName = f.Data, strings.TrimSuffix(filepath.Base(f.Path), ".h")
			case ".c":
				g.c = f.Data
			}
		}
		out = append(out, g)
	}
	if len(out) < len(sources)/2 {
		t.Fatalf("of %d interfaces only %d have names that go together", len(sources), len(out))
	}
	return out
}

// library is what generated packages import, with its types.
var library = sync.OnceValues(func() (map[string]*types.Package, error) {
	all := map[string]*types.Package{}
	pkgs, err := gopackages.Load(&gopackages.Config{Mode: gopackages.NeedName | gopackages.NeedTypes | gopackages.NeedImports | gopackages.NeedDeps},
		"context", "encoding/binary", "fmt", "io", "iter", "hardtack/msg", "hardtack/msg/ump", "hardtack/msg/wire")
	for _, p := range pkgs {
		if len(p.Errors) > 0 {
			return nil, p.Errors[0]
		}
		all[p.PkgPath] = p.Types
	}
	return all, err
})

type importer map[string]*types.Package

func (i importer) Import(path string) (*types.Package, error) {
	if p := i[path]; p != nil {
		return p, nil
	}
	return nil, fmt.Errorf("%q is not imported by generated packages", path)
}

func checkGo(t *testing.T, all []generated) {
	t.Helper()
	lib, err := library()
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range all {
		fset := gotoken.NewFileSet()
		f, err := goparser.ParseFile(fset, "f.go", g.goCode, goparser.SkipObjectResolution)
		if err == nil {
			_, err = (&types.Config{Importer: importer(lib)}).Check("f", fset, []*ast.File{f}, nil)
		}
		if err != nil {
			t.Errorf("%v\n%s", err, g.src)
		}
	}
}

func checkC(t *testing.T, all []generated) {
	t.Helper()
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		t.Log("no C compiler")
		return
	}
	dir := t.TempDir()
	args := []string{"-std=c11", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-Imsg", "-I" + dir, "-I../../msg/c"}
	for i, g := range all {
		sub := filepath.Join(dir, fmt.Sprint(i)) // the header is beside the source
		for name, data := range map[string][]byte{g.cName + ".h": g.header, g.cName + ".c": g.c} {
			if err := os.MkdirAll(sub, 0o777); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(sub, name), data, 0o666); err != nil {
				t.Fatal(err)
			}
		}
		args = append(args, filepath.Join(sub, g.cName+".c"))
	}
	if out, err := exec.Command(gcc, args...).CombinedOutput(); err != nil {
		t.Errorf("%v\n%.4000s", err, out)
		for i, g := range all {
			if strings.Contains(string(out), fmt.Sprintf("%s/%d/", dir, i)) {
				t.Fatalf("in %d:\n%s", i, g.src)
			}
		}
	}
}

// vet runs go vet, which compiles too, over packages of a module beside this one.
func vet(t *testing.T, all []generated) {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name string, data []byte) {
		t.Helper()
		name = filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o777), os.WriteFile(name, data, 0o666)); err != nil {
			t.Fatal(err)
		}
	}
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	sum, err := os.ReadFile(filepath.Join(root, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(mod), "\n") // after its own name
	write("go.mod", fmt.Appendf(nil, "module generated\n%s\nrequire hardtack v0.0.0\nreplace hardtack => %s\n", rest, root))
	write("go.sum", sum)
	for i, g := range all {
		write(fmt.Sprintf("p%d/f.go", i), g.goCode)
	}
	cmd := exec.Command("go", "vet", "-mod=mod", "./...")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOPROXY=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%.4000s", err, out)
	}
}

func TestEveryShape(t *testing.T) {
	all := generate(t, simplest())
	checkGo(t, all)
	checkC(t, all)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	g := &sample{Rand: rand.New(rand.NewPCG(seed, 1))}
	var sources []string
	for i := range 300 {
		name := fmt.Sprintf("i%d", i)
		if i%4 == 0 {
			if n := awkward[g.IntN(len(awkward))]; !reserved[n] {
				name = n
			}
		}
		sources = append(sources, g.iface(name))
	}
	all = generate(t, sources)
	checkGo(t, all)
	checkC(t, all[:min(len(all), 60)])
	vet(t, all[:12])
}
