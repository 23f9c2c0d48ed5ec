package idl

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/format"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// files reads from a map, as Load's reader.
func files(m map[string]string) Read {
	return func(path string) ([]byte, error) {
		s, ok := m[path]
		if !ok {
			return nil, fmt.Errorf("no file %s", path)
		}
		return []byte(s), nil
	}
}

func load(t *testing.T, name string) *Interface {
	t.Helper()
	i, err := Load(name, os.ReadFile)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// interfaces are the interface files of this package and our own.
func interfaces(t testing.TB) []string {
	var out []string
	for _, dir := range []string{"testdata", "../../idl"} {
		names, err := filepath.Glob(dir + "/*.if")
		if err != nil || names == nil {
			t.Fatalf("%s: %v", dir, err)
		}
		for _, n := range names {
			if b := filepath.Base(n); b != "types.if" && b != "platform.if" {
				out = append(out, n)
			}
		}
	}
	return out
}

func TestShapes(t *testing.T) {
	i := load(t, "../../idl/shapes.if")
	if i.Decl.Name != "shapes" || i.Decl.Text != "Every shape of the language" || i.Decl.Doc != "" {
		t.Errorf("interface %q %q, comment %q", i.Decl.Name, i.Decl.Text, i.Decl.Doc)
	}
	var b strings.Builder
	for _, m := range i.Messages {
		fmt.Fprintf(&b, "%d %s %d %d..%d %d\n", m.Num, m.Name(), m.Role, m.Min, m.Max, m.Caps)
	}
	const (
		address   = 2 + 16
		mask      = 4 * 8
		region    = 4 + 8 + 4 + mask
		segMin    = 4 + 4 + 1 + 4 + 4
		segMax    = 4 + 8*region + 4 + 65536 + 1 + 4 + 40 + 4
		scalars   = 15 + 15 + 1 + 1 + 4 + 4*8 + 4 + 2 + 4 + 8 + 4 + 4
		arraysMin = 6 + 4 + 4 + 4 + mask + 2*mask + 4 + 4 + 32
		arraysMax = arraysMin + 200 + 4096 + 65536 + 16*region + 3*(4+65536)
	)
	want := fmt.Sprintf(`1 nothing 0 0..0 0
2 scalars 0 %d..%d 0
3 arrays 0 %d..%d 0
4 texts 0 12..%d 0
5 caps 0 5..5 5
6 nested 0 %d..%d 1
7 ask 0 8..8 0
8 answer 0 12..12 0
9 read_block 1 8..8 0
10 read_block 2 12..%d 0
11 look_up 1 16..80 0
12 look_up 2 %d..%d 1
13 ping 1 4..4 0
14 ping 2 4..4 0
15 region 0 %d..%d 0
16 msg 0 4..65540 0
`, scalars, scalars, arraysMin, arraysMax, 12+65536+256+40, segMin+address, segMax+address, 12+2048,
		segMin+12, segMax+12, region, region)
	if b.String() != want {
		t.Errorf("messages:\n%s\nwant:\n%s", b.String(), want)
	}
	var names []string
	for _, typ := range i.Types {
		names = append(names, typ.Name)
	}
	if got := strings.Join(names, " "); got != "coreid handle mapping mask masks offset region digest title segment address conn_id" {
		t.Errorf("types in use: %s", got)
	}
	if doc := i.Messages[1].Decl.Doc; doc != "All scalars." {
		t.Errorf("comment of scalars: %q", doc)
	}
	if doc := i.Messages[6].Decl.Doc; doc != "" {
		t.Errorf("comment of ask: %q", doc)
	}
}

func TestInterfaces(t *testing.T) {
	for _, n := range interfaces(t) {
		load(t, n)
	}
}

// Each is one mistake in a file f.if, and where it is: the place of «, which is
// not part of the file.
func TestErrors(t *testing.T) {
	in := func(s string) string { return "interface x {\n" + s + "\n};\n" }
	for _, c := range []struct{ src, want string }{
		{"«", "expected interface, alias, typedef or import, found the end of the file"},
		{"«foo", `expected interface, alias, typedef or import, found "foo"`},
		{"interface «{", "expected the name of the interface, found '{'"},
		{"interface «message {", `expected the name of the interface, found "message"`},
		{"interface x «;", "expected '{' to open the interface, found ';'"},
		{"interface x «\"unfinished {\n message m();\n};", `this text has no end: expected " on the same line`},
		{"interface x «\"unfinished", `this text has no end: expected " before the end of the file`},
		{"interface x «\"unfinished\\", `this text has no end: expected " before the end of the file`},
		{"interface x \"a«\\é\" {", `unknown escape \é; expected \", \\, \n or \t`},
		{"interface x \"a«\\\r\" {", `unknown escape: a backslash and U+000D; expected \", \\, \n or \t`},
		{"interface x «\"unfinished\\\n\" {", `this text has no end: expected " on the same line`},
		{"interface x {\n «/* message m();\n};", "this comment has no end: expected */ before the end of the file"},
		{"interface x {\n «/* /* */ message m();\n};", "this comment has no end: expected */ before the end of the file"},
		{"interface x {\n message m();\n}«", "expected ';' after the interface's '}', found the end of the file"},
		{"interface x {\n message m();\n}; «interface y", `expected the end of the file (one interface a file), found "interface"`},
		{"interface x { message m();«", "expected message, rpc, call, response, error, alias, typedef or '}', found the end of the file"},
		{"interface «x { };", `interface "x" has no messages; expected at least one`},
		{"import «types;", `expected the name of a file in quotes after import, found "types"`},
		{"import «\"none.if\"; interface x { message m(); };", "no file none.if"},
		{"import «\"/etc/passwd\"; interface x { message m(); };", `expected a file's name relative to this file, found "/etc/passwd"`},
		{"import «\"f.if\"; interface x { message m(); };", "f.if imports itself"},
		{"import «\"other.if\"; interface x { message m(); };", "other.if has an interface; expected a file of types only"},
		{"import \"a.if\"; import «\"b.if\"; interface x { message m(); };", `type "t" comes from both a.if:1:7 and b.if:1:7`},
		{"«alias t uint8;", "the file has types only; expected an interface"},
		{in(" «mesage m();"), `expected message, rpc, call, response, error, alias, typedef or '}', found "mesage"`},
		{in(" message «();"), "expected the name of the message, found '('"},
		{in(" message m«;"), "expected '(' to open the arguments, found ';'"},
		{in(" message m(uint8«);"), "expected the argument's name, found ')'"},
		{in(" message m(«,);"), "expected an argument's type or ')', found ','"},
		{in(" message m(uint8 a, «);"), "expected an argument's type, found ')'"},
		{in(" message m(uint8 a «uint8 b);"), `expected ',' or ')' after the argument, found "uint8"`},
		{in(" message m(uint8 a)\n «message n();"), `expected ';' after the message, found "message"`},
		{in(" message m(«in uint8 a);"), `expected an argument's type or ')', found "in"`},
		{in(" rpc m(«uint8 a);"), `expected in, out or ')', found "uint8"`},
		{in(" rpc m(in uint8 a, «uint8 b);"), `expected in or out, found "uint8"`},
		{in(" message m(uint8 a[«]);"), "expected a length or the name of the length, found ']'"},
		{in(" message m(uint8 a[n, «]);"), "expected the greatest length, found ']'"},
		{in(" message m(uint8 a[n, 4«);"), "expected ']' after the length, found ')'"},
		{in(" message m(uint8 a[«0]);"), "the length is 0; expected at least 1"},
		{in(" message m(uint8 a[n, «0]);"), "the length is 0; expected at least 1"},
		{in(" message m(String a[«0]);"), "the length is 0; expected at least 1"},
		{in(" message m(uint8 a[n, «16777217]);"), "the length 16777217 is over the limit of 16777216 for elements of 1 bytes"},
		{in(" message m(uint8 a[n, «99999999999999999999]);"), `"99999999999999999999" is no number below 2^64`},
		{in(" message m(uint8 a[n, «18446744073709551615]);"), "the length 18446744073709551615 is over the limit of 16777216 for elements of 1 bytes"},
		{in(" message m(uint8 a[«017]);"), `the number "017" begins with 0; expected 0x for hexadecimal, 0o for octal`},
		{in(" message m(uint8 a[«0xg]);"), `"0xg" is no number below 2^64`},
		{in(" message m(uint64 a[4096], uint8 «b[n, 16777216]);"), `with "b" the message "m" takes up to 16809988 bytes; the limit is 16777216`},
		{in(" typedef struct { uint64 x[2097152]; uint64 y; } «b; message m(b z);"), `type "b" takes up to 16777224 bytes; the limit is 16777216`},
		{in(" message m(cap a[16], cap «b);"), `the message "m" has more than 16 caps`},
		{in(" message m(cap a[n, «4]);"), "an array of caps needs a fixed length; expected a number in [ ]"},
		{in(" message m(«foo a);"), `unknown type "foo"; expected a built-in, declared or imported type`},
		{in(" message m(uint8 a, uint8 «a);"), `argument "a" is declared twice; the first is at f.if:2:18`},
		{in(" message m(uint8 a, uint8 b[«a, 4]);"), `argument "a" is declared twice; the first is at f.if:2:18`},
		{in(" rpc m(in uint8 a, out uint8 «a);"), `argument "a" is declared twice; the first is at f.if:2:17`},
		{in(" message m();\n rpc «m();"), `message "m" is declared twice; the first is at f.if:2:10`},
		{in(" alias t uint8;\n typedef uint16 «t;\n message m();"), `type "t" is declared twice; the first is at f.if:2:8`},
		{in(" alias «uint8 uint16;\n message m();"), `"uint8" is a built-in type; expected another name`},
		{in(" alias «;"), "expected the new type's name, found ';'"},
		{in(" alias t «;"), "expected the type that it stands for, found ';'"},
		{in(" typedef «;"), "expected struct, enum or the name of a type, found ';'"},
		{in(" typedef struct {«} t;"), "expected a field's type, found '}'"},
		{in(" typedef struct { uint8 a «} t;"), "expected ';' after the field, found '}'"},
		{in(" typedef struct { uint8 a; } «;"), "expected the struct's name, found ';'"},
		{in(" typedef struct { uint8 a; uint8 «a; } t; message m();"), `field "a" is declared twice; the first is at f.if:2:25`},
		{in(" typedef enum {«} t;"), "expected the name of a value, found '}'"},
		{in(" typedef enum { A, «} t;"), "expected the name of a value, found '}'"},
		{in(" typedef enum { A «B } t;"), `expected ',' or '}' after the value, found "B"`},
		{in(" typedef enum { A, «A } t; message m();"), `value "A" is declared twice; the first is at f.if:2:17`},
		{in(" typedef uint8 t[«n];"), `expected the array's length, found "n"`},
		{in(" typedef struct { «t again; } t; message m();"), `type "t" contains itself; it would have no end`},
		{in(" typedef struct { b x; } a; typedef «a b[4]; message m();"), `type "a" contains itself; it would have no end`},
		{in(" alias a b; alias b «a; message m();"), `type "a" contains itself; it would have no end`},
		{in(" @«(x=1) message m();"), "expected the annotation's name, found '('"},
		{in(" @a(x«) message m();"), "expected '=' after the key, found ')'"},
		{in(" @a(x=1 «y=2) message m();"), `expected ',' or ')' in the annotation, found "y"`},
		{in(" message m(uint8 «é);"), "the character 'é' has no meaning here"},
		{in(" message m(uint8 a«\xff);"), "byte 0xff is not UTF-8"},
		{in(" message m(); // «\xc3("), "byte 0xc3 is not UTF-8"},
		{in(" message «" + strings.Repeat("m", 65) + "();"), `the name "` + strings.Repeat("m", 64) + `…" has 65 characters; the limit is 64`},
	} {
		before, after, _ := strings.Cut(c.src, "«")
		line := 1 + strings.Count(before, "\n")
		col := 1 + len([]rune(before[strings.LastIndexByte(before, '\n')+1:]))
		_, err := Load("f.if", files(map[string]string{
			"f.if": before + after, "a.if": "alias t uint8;", "b.if": "alias t uint8;",
			"loop.if": `import "loop.if";`, "other.if": in("message m();"),
		}))
		want := fmt.Sprintf("f.if:%d:%d: %s", line, col, c.want)
		var e *Error
		if !errors.As(err, &e) || err.Error() != want {
			t.Errorf("%q\n got %v\nwant %s", c.src, err, want)
		}
	}
}

func TestDepth(t *testing.T) {
	var b strings.Builder
	b.WriteString("interface x {\n typedef struct { uint8 a; } t0;\n")
	for i := 1; i <= MaxDepth; i++ {
		fmt.Fprintf(&b, " typedef struct { t%d a; } t%d;\n", i-1, i)
	}
	b.WriteString(" message m(t0 a);\n};\n")
	_, err := Load("f.if", files(map[string]string{"f.if": b.String()}))
	if err == nil || err.Error() != `f.if:18:28: type "t16" has more than 16 structs and arrays within each other` {
		t.Error(err)
	}
}

func TestTooMany(t *testing.T) {
	repeat := func(n int, format string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, format, i)
		}
		return b.String()
	}
	for _, c := range []struct{ src, want string }{
		{strings.Repeat(" ", MaxFile) + "x", "f.if:1:1: the file has 1048577 bytes; the limit is 1048576"},
		{"interface x {\n" + repeat(MaxMessages+1, "message m%d();\n") + "};", "f.if:4002:9: more than 4000 messages"},
		{"interface x {\n" + repeat(MaxMessages/2+1, "rpc m%d();\n") + "};", "f.if:2002:5: more than 4000 messages (an rpc counts for two)"},
		{"interface x { message m(uint8 a" + repeat(MaxArgs, ",\nuint8 a%d") + "); };", "f.if:129:7: more than 128 arguments"},
		{"interface x { typedef struct {\n" + repeat(MaxArgs+1, "uint8 a%d;\n") + "} t; };", "f.if:130:7: more than 128 fields"},
		{"interface x { typedef enum { V" + repeat(MaxValues, ",\nV%d") + "} t; };", "f.if:4097:1: more than 4096 values"},
		{"interface x {\n" + repeat(MaxTypes+1, "alias t%d uint8;\n") + "};", "f.if:1026:7: more than 1024 types"},
	} {
		_, err := Load("f.if", files(map[string]string{"f.if": c.src}))
		if err == nil || err.Error() != c.want {
			t.Errorf("got %v, want %s", err, c.want)
		}
	}
}

// An imported file's types mean what they mean there, whatever the importer calls so.
func TestImportScope(t *testing.T) {
	m := map[string]string{
		"dir/f.if":     `import "sub/t.if"; interface x { alias word uint64; message m(word a, pair b); };`,
		"dir/sub/t.if": `import "u.if"; typedef word pair[2];`,
		"dir/sub/u.if": `alias word uint16;`,
	}
	i, err := Load("dir/f.if", files(m))
	if err != nil {
		t.Fatal(err)
	}
	if got := i.Messages[0].Max; got != 8+2*2 {
		t.Errorf("the message has %d bytes, not 12", got)
	}
	if _, err := Load("dir/f.if", files(map[string]string{
		"dir/f.if": `interface x { message m(pair b); };`, "t.if": "typedef uint8 pair[2];"}), "t.if"); err != nil {
		t.Error(err)
	}
	_, err = Load("dir/f.if", files(map[string]string{"dir/f.if": `import "t.if"; interface x { message m(); };`, "dir/t.if": `import "t.if";`}))
	if err == nil || err.Error() != "dir/t.if:1:8: dir/t.if imports itself" {
		t.Error(err)
	}
}

func TestFingerprint(t *testing.T) {
	print := func(src string) [FingerprintBytes]byte {
		t.Helper()
		i, err := Load("f.if", files(map[string]string{"f.if": src}))
		if err != nil {
			t.Fatal(err)
		}
		return i.Fingerprint()
	}
	base := `interface x { typedef struct { uint8 a; uint32 b; } s; typedef enum { A, B } e; message m(s v, e w, uint8 d[n, 4]); rpc r(in int a, out String t[9]); };`
	want := print(base)
	// Fixed for ever: a change of this number cuts old programs off from new.
	if got := fmt.Sprintf("%x", want); got != "d5dff11184d8dc425f8458d140401870" {
		t.Errorf("fingerprint %s", got)
	}
	swap := func(old, new string) string {
		t.Helper()
		if !strings.Contains(base, old) {
			t.Fatalf("no %q", old)
		}
		return strings.ReplaceAll(base, old, new)
	}
	for _, same := range []string{
		swap("interface x {", "interface x \"words\" { // and a comment\n alias unused uint8;"),
		swap("} s;", "} s0; alias s s0;"), swap("[n, 4]", "[length, 4]"), swap("int a", "int32 a"), swap("message", "call"),
	} {
		if print(same) != want {
			t.Errorf("fingerprint of %s differs", same)
		}
	}
	for _, other := range []string{
		swap("interface x", "interface y"), swap("message m", "message q"), swap("uint8 a;", "int8 a;"), swap("uint32 b;", "uint32 c;"),
		swap("A, B", "B, A"), swap("A, B", "A, B, C"), swap("[n, 4]", "[n, 5]"), swap("[n, 4]", "[4]"), swap("in int a", "out int a"),
		swap("t[9]", "t[8]"), swap("s v, e w", "e w, s v"), swap("rpc r", "message q(); rpc r"), swap("uint8 d", "char d"),
	} {
		if print(other) == want {
			t.Errorf("fingerprint of %s is the same", other)
		}
	}
}

// What is generated is what is committed, for our own interfaces.
func TestCommitted(t *testing.T) {
	names, err := filepath.Glob("../../idl/*.if")
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range names {
		if filepath.Base(n) == "types.if" {
			continue
		}
		want := Languages{Go: true, C: true}
		switch filepath.Base(n) { // as in the Makefile
		case "monitor.if", "spawn.if", "live.if":
			want = Languages{Go: true, NoTransport: true}
		case "process.if", "clusters.if", "names.if", "klog.if", "metrics.if":
			want.NoTransport = true
		case "machine.if":
			want = Languages{Go: true}
		}
		out, err := Compile(n, os.ReadFile, want)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range out {
			have, err := os.ReadFile(filepath.Join("../../idl", o.Path))
			if err != nil || string(have) != string(o.Data) {
				t.Errorf("%s is not what hardtack idl makes of %s; %v", o.Path, n, err)
			}
		}
	}
}

// The C code of every interface compiles without a warning, and the header by
// itself; the Go code compiles and is formatted.
func TestCompiles(t *testing.T) {
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		t.Skip("no C compiler")
	}
	for _, n := range interfaces(t) {
		if strings.HasPrefix(n, "../../idl") {
			continue // by the tests there
		}
		dir := t.TempDir()
		out, err := Compile(n, os.ReadFile, Languages{Go: true, C: true})
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range out {
			p := filepath.Join(dir, filepath.Base(o.Path))
			if err := os.WriteFile(p, o.Data, 0o666); err != nil {
				t.Fatal(err)
			}
			switch filepath.Ext(p) {
			case ".c":
				cmd := exec.Command(gcc, "-std=c11", "-Wall", "-Wextra", "-Werror", "-O1", "-I../../msg/c", "-I"+dir, "-c", "-o", p+".o", p)
				if b, err := cmd.CombinedOutput(); err != nil {
					t.Errorf("%s: %v\n%s", n, err, b)
				}
			case ".go":
				if again, err := format.Source(o.Data); err != nil || string(again) != string(o.Data) {
					t.Errorf("%s: gofmt would change it; %v", n, err)
				}
				build(t, p)
			}
		}
	}
}

// build compiles a file as a package of this module.
func build(t *testing.T, file string) {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	at := filepath.Join(root, "idl", "generated", filepath.Base(file))
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {at: file}})
	if err != nil {
		t.Fatal(err)
	}
	list := filepath.Join(t.TempDir(), "overlay.json")
	if err := os.WriteFile(list, overlay, 0o666); err != nil {
		t.Fatal(err)
	}
	if b, err := exec.Command("go", "build", "-overlay", list, "hardtack/idl/generated").CombinedOutput(); err != nil {
		t.Errorf("%s: %v\n%s", file, err, b)
	}
}

func TestCollisions(t *testing.T) {
	for _, c := range []struct{ src, want string }{
		{"message a_b();\n message aB();\n message a__b();", `f.if:4:10: "a__b" would be called ABMsg in Go, as does what is declared at f.if:3:10`},
		{"message m(uint8 a_b, uint8 aB);", `f.if:2:29: "aB" would be called AB in Go, as does what is declared at f.if:2:18`},
		{"rpc get();\n message get_call();\n message getCall();", `f.if:4:10: "getCall" would be called GetCallMsg in Go, as does what is declared at f.if:3:10`},
	} {
		_, err := Compile("f.if", files(map[string]string{"f.if": "interface x {\n " + c.src + "\n};"}), Languages{Go: true, C: true})
		if err == nil || err.Error() != c.want {
			t.Errorf("%s:\n got %v\nwant %s", c.src, err, c.want)
		}
	}
}

func FuzzLoad(f *testing.F) {
	for _, n := range append(interfaces(f), "../../idl/types.if") {
		src, err := os.ReadFile(n)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(src)
	}
	for _, s := range []string{"", "interface x {", "interface x \"\\", "/* /*", "interface x { message m(uint8 a[n, 0xffffffffffffffff]); };",
		"interface x { typedef struct { t a; } t; message m(t a); };", "import \"f.if\";", "interface x { message \xff", "\ufeffinterface"} {
		f.Add([]byte(s))
	}
	types, err := os.ReadFile("../../idl/types.if")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		read := files(map[string]string{"f.if": string(src), "types.if": string(types)})
		i, err := Load("f.if", read)
		if err != nil {
			var e *Error
			if !errors.As(err, &e) || e.Pos.Line < 1 || e.Pos.Col < 1 || e.Msg == "" || strings.ContainsAny(e.Msg, "\n\r") {
				t.Fatalf("error without a place: %#v", err)
			}
			return
		}
		again, err := Load("f.if", read)
		if err != nil || again.Fingerprint() != i.Fingerprint() {
			t.Fatalf("loaded twice: %v", err)
		}
		// What is generated is Go and C that is well formed, or one error.
		out, err := Compile("f.if", read, Languages{Go: true, C: true})
		var e *Error
		if err != nil && !errors.As(err, &e) {
			t.Fatal(err)
		}
		for _, o := range out {
			if strings.Contains(string(o.Data), "%!") && !strings.Contains(string(src), "%!") {
				t.Fatalf("%s has a formatting mistake", o.Path)
			}
		}
	})
}
