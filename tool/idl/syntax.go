package idl

// File is a parsed interface file, before names are looked up. It is never
// changed after parsing.
type File struct {
	Name    string
	Imports []Import
	Types   []*TypeDecl // before and in the interface, in order
	Iface   *IfaceDecl  // nil for a file of types
}

// Import is one import line.
type Import struct {
	Pos  Pos
	Path string
}

// IfaceDecl is an interface without its types.
type IfaceDecl struct {
	Pos      Pos // of the name
	Name     string
	Text     string // the description
	Doc      string
	Messages []*MessageDecl
	Errors   []*ErrorDecl
}

// ErrorDecl declares an error that calls can end with.
type ErrorDecl struct {
	Pos  Pos // of the name
	Name string
	Text string // for people; may be empty
	Doc  string
}

// TypeDecl declares a type.
type TypeDecl struct {
	Pos    Pos // of the name
	Name   string
	Doc    string
	Of     *Arg // alias and array: the type meant, with its length; its Name is empty
	Fields []*Arg
	Values []Value
}

// Value is one name of an enum.
type Value struct {
	Pos  Pos
	Name string
}

// MessageDecl is a message or an rpc.
type MessageDecl struct {
	Pos  Pos    // of the name
	Key  string // message, call, response or rpc
	Name string
	Doc  string
	Args []*Arg
}

// Direction of an rpc's argument.
type Direction uint8

const (
	Plain Direction = iota // not of an rpc
	In
	Out
)

// Arg is an argument of a message, a field of a struct or the meaning of an
// alias: TYPE NAME, with at most one of Len ([N]) and LenName ([name]); Max goes
// with LenName, or alone with texts.
type Arg struct {
	Dir     Direction
	TypePos Pos
	Type    string
	Pos     Pos // of the name
	Name    string
	LenName string
	HasLen  bool
	Len     uint64 // the number in [N], meaning by the type
	LenPos  Pos
	HasMax  bool
	Max     uint64
	MaxPos  Pos
}

type parser struct {
	lex *lexer
	tok token // the one that is looked at
}

// Parse reads an interface file.
func Parse(file string, src []byte) (f *File, err error) {
	l, err := newLexer(file, src)
	if err != nil {
		return nil, err
	}
	p := &parser{lex: l}
	// The parser leaves by panic with its *Error, so that its functions read
	// like the grammar; any other panic is our mistake and goes on.
	defer func() {
		if r := recover(); r != nil {
			e, ok := r.(*Error)
			if !ok {
				panic(r)
			}
			f, err = nil, e
		}
	}()
	p.next()
	return p.file(file), nil
}

func (p *parser) next() token {
	t := p.tok
	tok, err := p.lex.next()
	if err != nil {
		panic(err)
	}
	p.tok = tok
	return t
}

// expected refuses the token at hand.
func (p *parser) expected(what string) {
	panic(errorf(p.tok.pos, "expected %s, found %v", what, p.tok))
}

// is says whether the token at hand is the key word or punctuation s.
func (p *parser) is(s string) bool {
	return p.tok.text == s && (p.tok.kind == tokPunct || p.tok.kind == tokName)
}

func (p *parser) accept(s string) bool {
	if !p.is(s) {
		return false
	}
	p.next()
	return true
}

// punct wants s; where says what it ends or separates.
func (p *parser) punct(s, where string) {
	if !p.accept(s) {
		p.expected("'" + s + "' " + where)
	}
}

// reserved are Flounder's reserved words; all others are names as well.
var reserved = map[string]bool{"interface": true, "message": true, "rpc": true, "in": true, "out": true}

func (p *parser) name(what string) token {
	if p.tok.kind != tokName || reserved[p.tok.text] {
		p.expected(what)
	}
	return p.next()
}

func (p *parser) number(what string) token {
	if p.tok.kind != tokNumber {
		p.expected(what)
	}
	return p.next()
}

func (p *parser) file(name string) *File {
	f := &File{Name: name}
	for p.is("import") {
		p.next()
		if p.tok.kind != tokString {
			p.expected("the name of a file in quotes after import")
		}
		t := p.next()
		f.Imports = append(f.Imports, Import{t.pos, t.text})
		if len(f.Imports) > MaxImports {
			panic(errorf(t.pos, "more than %d imports", MaxImports))
		}
		p.punct(";", "after an import")
	}
	for p.typeDecl(f) {
	}
	if p.tok.kind == tokEOF && (len(f.Types) > 0 || len(f.Imports) > 0) {
		return f
	}
	doc := p.tok.doc
	if !p.accept("interface") {
		p.expected("interface, alias, typedef or import")
	}
	n := p.name("the name of the interface")
	f.Iface = &IfaceDecl{Pos: n.pos, Name: n.text, Doc: doc}
	if p.tok.kind == tokString {
		f.Iface.Text = p.next().text
	}
	p.punct("{", "to open the interface")
	for !p.accept("}") {
		if p.typeDecl(f) || p.errorDecl(f.Iface) {
			continue
		}
		p.message(f.Iface)
	}
	p.punct(";", "after the interface's '}'")
	if p.tok.kind != tokEOF {
		p.expected("the end of the file (one interface a file)")
	}
	return f
}

// typeDecl reads an alias or a typedef, if one is next.
func (p *parser) typeDecl(f *File) bool {
	d := &TypeDecl{Doc: p.tok.doc}
	switch {
	case p.accept("alias"):
		n := p.name("the new type's name")
		t := p.name("the type that it stands for")
		d.Pos, d.Name = n.pos, n.text
		d.Of = &Arg{Type: t.text, TypePos: t.pos, Pos: t.pos}
		p.punct(";", "after the alias")
	case p.accept("typedef"):
		p.typedef(d)
		p.punct(";", "after the typedef")
	default:
		return false
	}
	f.Types = append(f.Types, d)
	if len(f.Types) > MaxTypes {
		panic(errorf(d.Pos, "more than %d types", MaxTypes))
	}
	return true
}

// typedef reads what follows the key word, except for the semicolon.
func (p *parser) typedef(d *TypeDecl) {
	t := p.name("struct, enum or the name of a type")
	if t.text == "struct" && p.accept("{") {
		for {
			a := p.arg("a field's type", "the field's name")
			p.punct(";", "after the field")
			d.Fields = append(d.Fields, a)
			if len(d.Fields) > MaxArgs {
				panic(errorf(a.Pos, "more than %d fields", MaxArgs))
			}
			if p.accept("}") {
				break
			}
		}
		n := p.name("the struct's name")
		d.Pos, d.Name = n.pos, n.text
		return
	}
	if t.text == "enum" && p.accept("{") {
		for {
			v := p.name("the name of a value")
			d.Values = append(d.Values, Value{v.pos, v.text})
			if len(d.Values) > MaxValues {
				panic(errorf(v.pos, "more than %d values", MaxValues))
			}
			if p.accept("}") {
				break
			}
			p.punct(",", "or '}' after the value")
		}
		n := p.name("the enum's name")
		d.Pos, d.Name = n.pos, n.text
		return
	}
	n := p.name("the new type's name")
	d.Pos, d.Name = n.pos, n.text
	d.Of = &Arg{Type: t.text, TypePos: t.pos, Pos: n.pos}
	if p.accept("[") {
		l := p.number("the array's length")
		d.Of.HasLen, d.Of.Len, d.Of.LenPos = true, l.num, l.pos
		p.punct("]", "after the array's length")
	}
}

// errorDecl reads an error, if one is next.
func (p *parser) errorDecl(i *IfaceDecl) bool {
	d := &ErrorDecl{Doc: p.tok.doc}
	if !p.accept("error") {
		return false
	}
	n := p.name("the error's name")
	d.Pos, d.Name = n.pos, n.text
	if p.tok.kind == tokString {
		d.Text = p.next().text
	}
	p.punct(";", "after the error")
	i.Errors = append(i.Errors, d)
	if len(i.Errors) > MaxErrors {
		panic(errorf(d.Pos, "more than %d errors", MaxErrors))
	}
	return true
}

func (p *parser) message(i *IfaceDecl) {
	doc := p.tok.doc
	for p.accept("@") {
		p.annotation()
	}
	var key string
	for _, k := range []string{"message", "call", "response", "rpc"} {
		if key == "" && p.accept(k) {
			key = k
		}
	}
	if key == "" {
		p.expected("message, rpc, call, response, error, alias, typedef or '}'")
	}
	n := p.name("the name of the " + key)
	m := &MessageDecl{Pos: n.pos, Key: key, Name: n.text, Doc: doc}
	p.punct("(", "to open the arguments")
	for !p.accept(")") {
		if len(m.Args) > 0 {
			p.punct(",", "or ')' after the argument")
		}
		dir := Plain
		if key == "rpc" {
			switch {
			case p.accept("in"):
				dir = In
			case p.accept("out"):
				dir = Out
			case len(m.Args) == 0:
				p.expected("in, out or ')'")
			default:
				p.expected("in or out")
			}
		}
		what := "an argument's type"
		if dir == Plain && len(m.Args) == 0 {
			what += " or ')'"
		}
		a := p.arg(what, "the argument's name")
		a.Dir = dir
		m.Args = append(m.Args, a)
		if len(m.Args) > MaxArgs {
			panic(errorf(a.Pos, "more than %d arguments", MaxArgs))
		}
	}
	p.punct(";", "after the "+key)
	i.Messages = append(i.Messages, m)
	if len(i.Messages) > MaxMessages {
		panic(errorf(m.Pos, "more than %d messages", MaxMessages))
	}
}

// annotation reads NAME(KEY=VALUE, …) and forgets it.
func (p *parser) annotation() {
	p.name("the annotation's name")
	p.punct("(", "to open the annotation")
	for first := true; !p.accept(")"); first = false {
		if !first {
			p.punct(",", "or ')' in the annotation")
		}
		p.name("a key")
		p.punct("=", "after the key")
		if p.tok.kind != tokNumber {
			p.name("a number or the name of an argument")
			continue
		}
		p.next()
	}
}

func (p *parser) arg(wantType, wantName string) *Arg {
	t := p.name(wantType)
	n := p.name(wantName)
	a := &Arg{TypePos: t.pos, Type: t.text, Pos: n.pos, Name: n.text}
	if !p.accept("[") {
		return a
	}
	if p.tok.kind == tokNumber {
		l := p.next()
		a.HasLen, a.Len, a.LenPos = true, l.num, l.pos
	} else {
		l := p.name("a length or the name of the length")
		a.LenName, a.LenPos = l.text, l.pos
		if p.accept(",") {
			m := p.number("the greatest length")
			a.HasMax, a.Max, a.MaxPos = true, m.num, m.pos
		}
	}
	p.punct("]", "after the length")
	return a
}
