package idl

import (
	"bytes"
	"fmt"
)

// goPackage is what the Go writer has worked out about an interface.
type goPackage struct {
	*Interface
	types    map[*Type]string // declared types
	messages []goMessage
	out      bytes.Buffer
	bufs     int // temporary names given out
	errors   []string
	handler  string // the interface of handlers
	toServer string
	toClient string
	run, all string // Client's methods that deliver messages
}

type goMessage struct {
	*Message
	Type   string // of Go
	Method string // as part of names: Get of the rpc get, whose types are GetCall and GetReply
	fields []goField
	handle string // the method of a handler
	writer string // methods of Conn, if the message is a piece of a stream
	reader string
}

type goField struct {
	*Field
	Name string
}

func (g *goPackage) p(format string, args ...any) { fmt.Fprintf(&g.out, format+"\n", args...) }

// nameAll chooses the Go names, or says which two collide.
func (g *goPackage) nameAll() error {
	space := newNames("Go", goReserved...)
	g.types = map[*Type]string{}
	for _, t := range g.Types {
		n := camel(t.Name)
		name, err := space.take(t.Decl.Pos, t.Name, n, n+"Type")
		if err != nil {
			return err
		}
		g.types[t] = name
		if t.Kind == Struct {
			if _, err := goFields(t.Fields); err != nil {
				return err
			}
		}
		for _, v := range t.Values {
			if _, err := space.take(v.Pos, v.Name, name+camel(v.Name)); err != nil {
				return err
			}
		}
	}
	for _, m := range g.Messages {
		n := camel(m.Name())
		wanted := []string{n, n + "Msg"}
		switch m.Role {
		case Call:
			wanted = []string{n + "Call"}
		case Reply:
			wanted = []string{n + "Reply"}
		}
		name, err := space.take(m.Decl.Pos, m.Name(), wanted...)
		if err != nil {
			return err
		}
		fields, err := goFields(m.Fields)
		if err != nil {
			return err
		}
		for i := range fields {
			if fields[i].Name == "Num" { // a method of all messages
				fields[i].Name = "NumField"
			}
		}
		g.messages = append(g.messages, goMessage{Message: m, Type: name, Method: n, fields: fields})
	}
	for _, e := range g.Errors {
		n := "Err" + camel(e.Name)
		name, err := space.take(e.Pos, e.Name, n, n+"Error")
		if err != nil {
			return err
		}
		g.errors = append(g.errors, name)
	}
	g.handler, g.toServer, g.toClient = space.free("Handler"), space.free("ToServer"), space.free("ToClient")
	g.nameMethods()
	return nil
}

// nameMethods chooses the names of methods that give way to others.
func (g *goPackage) nameMethods() {
	conn, client, handler := newNames("Go", connMethods...), newNames("Go"), newNames("Go")
	for _, m := range g.messages {
		conn.of["Send"+m.Type], conn.of["Reply"+m.Method], conn.of["Fail"+m.Method] = Pos{}, Pos{}, Pos{}
		if m.Role == Call {
			client.of[m.Method], handler.of[m.Method] = Pos{}, Pos{}
		}
	}
	g.run, g.all = client.free("Run"), client.free("All")
	for i := range g.messages {
		m := &g.messages[i]
		if m.handle = m.Method; m.Role == OneWay {
			m.handle = handler.free(m.Method)
		}
		if _, ok := m.bytes(); ok {
			m.writer, m.reader = conn.free(m.Type+"Writer"), conn.free(m.Type+"Reader")
		}
	}
}

// connMethods are what a Conn has beside what messages give it, and its fields.
var connMethods = []string{"Conn", "Send", "Recv", "Channels", "All", "Serve", "Begin", "BeginLong", "Commit", "CommitLong",
	"Abandon", "Next", "Caps", "Ready", "Share", "Close", "Fail", "Err", "Done", "End", "Interface", "Rebind", "Replied",
	"ReplyError", "ServeCalls", "Stats", "Trace"}

func goFields(fields []*Field) ([]goField, error) {
	space := newNames("Go")
	var out []goField
	for _, f := range fields {
		name, err := space.take(f.Pos, f.Name, camel(f.Name))
		if err != nil {
			return nil, err
		}
		out = append(out, goField{f, name})
	}
	return out, nil
}

var goScalar = [...]string{Uint8: "uint8", Uint16: "uint16", Uint32: "uint32", Uint64: "uint64",
	Int8: "int8", Int16: "int16", Int32: "int32", Int64: "int64",
	Bool: "bool", Char: "byte", Errval: "wire.Errval", Iref: "wire.Iref", Cap: "msg.Cap", Text: "string"}

// goType is t as a Go type.
func (g *goPackage) goType(t *Type) string {
	if name := g.types[t]; name != "" {
		return name
	}
	switch t.Kind {
	case Slice:
		return "[]" + g.goType(t.Elem)
	case Array:
		return fmt.Sprintf("[%d]%s", t.Len, g.goType(t.Elem))
	}
	return goScalar[t.Kind]
}

// typeDecls writes the declared types.
func (g *goPackage) typeDecls() {
	for _, t := range g.Types {
		name := g.types[t]
		g.p("")
		switch t.Kind {
		case Struct:
			g.comment("", fmt.Sprintf("%s is the struct %s.", name, t.Name), t.Decl.Doc)
			g.p("type %s struct {", name)
			fields, _ := goFields(t.Fields)
			g.fieldDecls(fields)
			g.p("}")
		case Enum:
			g.enum(t, name)
		case Alias:
			g.comment("", fmt.Sprintf("%s is %s.", name, t.Name), t.Decl.Doc)
			g.p("type %s = %s", name, g.goType(t.Elem))
		default:
			g.comment("", fmt.Sprintf("%s is %s.", name, t.Name), t.Decl.Doc)
			bare := *t
			bare.Decl = nil
			g.p("type %s = %s", name, g.goType(&bare))
		}
	}
}

func (g *goPackage) enum(t *Type, name string) {
	g.comment("", fmt.Sprintf("%s is the enumeration %s.", name, t.Name), t.Decl.Doc)
	g.p("type %s uint32", name)
	g.p("\n// The values of %s.\nconst (", name)
	for i, v := range t.Values {
		if i == 0 {
			g.p("%s%s %s = iota", name, camel(v.Name), name)
		} else {
			g.p("%s%s", name, camel(v.Name))
		}
	}
	g.p(")\n\nvar names%s = [...]string{", name)
	for _, v := range t.Values {
		g.p("%q,", v.Name)
	}
	g.p("}\n\n// String is the value's name in the interface.\nfunc (e %s) String() string {", name)
	g.p("if int(e) < len(names%s) {\nreturn names%[1]s[e]\n}", name)
	g.p(`return fmt.Sprintf("%s(%%d)", uint32(e))`+"\n}", t.Name)
}

func (g *goPackage) fieldDecls(fields []goField) {
	for _, f := range fields {
		note := ""
		switch u := f.Type.Under(); u.Kind {
		case Slice:
			note = fmt.Sprintf(" // at most %d", u.Limit)
		case Text:
			note = fmt.Sprintf(" // at most %d bytes", u.Limit)
		}
		g.p("%s %s%s", f.Name, g.goType(f.Type), note)
	}
}
