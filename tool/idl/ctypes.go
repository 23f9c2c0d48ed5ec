package idl

import (
	"bytes"
	"fmt"
	"strings"
)

// cModule is what the C writer has worked out about an interface.
type cModule struct {
	*Interface
	prefix   string           // of all names, with the underscore
	macro    string           // the same in capitals
	types    map[*Type]string // declared types
	values   map[*Type][]string
	messages []cMessage
	errors   []string // of the declared errors, with the prefix
	fail     string   // the function that answers a call with an error, without the prefix
	givenUp  string   // the member of the handlers
	out      *bytes.Buffer
	vars     int // temporary names given out
}

type cMessage struct {
	*Message
	Name    string // without the prefix: get_call of the rpc get
	handler string // what handles it, a member of the handlers
	fields  []cField
}

// cField is a field and the names of its members: a Slice has two.
type cField struct {
	*Field
	Name, Len string
}

func (c *cModule) p(format string, args ...any) { fmt.Fprintf(c.out, format+"\n", args...) }

// cReserved are names that a member cannot have: C's key words, and macros of
// the headers that a generated file includes.
var cReserved = func() map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(`auto break case char const continue default do double else enum extern float for
		goto if inline int long register restrict return short signed sizeof static struct switch typedef union
		unsigned void volatile while bool true false errno NULL EOF stdin stdout stderr offsetof assert linux unix
		alignas alignof noreturn asm typeof`) {
		m[w] = true
	}
	return m
}()

// cName is a name as C takes it.
func cName(name string) string {
	if cReserved[name] || strings.HasPrefix(name, "_") {
		return "x_" + strings.TrimLeft(name, "_")
	}
	return name
}

func (c *cModule) nameAll() error {
	c.prefix = cName(c.Decl.Name) + "_"
	if strings.HasPrefix(c.prefix, "ht_") { // the library's
		c.prefix = "x_" + c.prefix
	}
	c.macro = strings.ToUpper(c.prefix)
	space := newNames("C", cFixed...)
	c.types, c.values = map[*Type]string{}, map[*Type][]string{}
	for _, t := range c.Types {
		name, err := space.take(t.Decl.Pos, t.Name, t.Name+"_t")
		if err != nil {
			return err
		}
		c.types[t] = c.prefix + name
		if _, err := c.members(t.Fields); err != nil {
			return err
		}
		for _, v := range t.Values {
			name, err := space.take(v.Pos, v.Name, strings.ToUpper(t.Name+"_"+v.Name), t.Name+"_"+v.Name)
			if err != nil {
				return err
			}
			c.values[t] = append(c.values[t], c.macro+name)
		}
	}
	for _, m := range c.Messages {
		name := m.Name() + [...]string{OneWay: "", Call: "_call", Reply: "_reply"}[m.Role]
		name, err := space.take(m.Decl.Pos, m.Name(), name, name+"_msg")
		if err != nil {
			return err
		}
		if _, err := space.take(m.Decl.Pos, m.Name(), "send_"+name); err != nil {
			return err
		}
		fields, err := c.members(m.Fields)
		if err != nil {
			return err
		}
		c.messages = append(c.messages, cMessage{Message: m, Name: name, fields: fields})
	}
	for _, e := range c.Errors {
		name, err := space.take(e.Pos, e.Name, strings.ToUpper("error_"+e.Name), "error_"+e.Name)
		if err != nil {
			return err
		}
		c.errors = append(c.errors, c.macro+name)
	}
	handlers := newNames("C", "room", "closed") // the library's own
	for i := range c.messages {
		m := &c.messages[i]
		n := cName(m.Name)
		var err error
		if m.handler, err = handlers.take(m.Decl.Pos, m.Name, n, n+"_msg"); err != nil {
			return err
		}
	}
	c.fail, c.givenUp = space.free("fail"), handlers.free("given_up")
	return nil
}

// members are the C names of fields.
func (c *cModule) members(fields []*Field) ([]cField, error) {
	space := newNames("C")
	out := make([]cField, len(fields))
	for i, f := range fields {
		n := cName(f.Name)
		name, err := space.take(f.Pos, f.Name, n, n+"_")
		if err != nil {
			return nil, err
		}
		out[i] = cField{Field: f, Name: name}
	}
	for i, f := range fields {
		if f.Type.Kind != Slice {
			continue
		}
		n := cName(f.Len)
		name, err := space.take(f.Pos, f.Len, n, n+"_")
		if err != nil {
			return nil, err
		}
		out[i].Len = name
	}
	return out, nil
}

var cScalar = [...]string{Uint8: "uint8_t", Uint16: "uint16_t", Uint32: "uint32_t", Uint64: "uint64_t",
	Int8: "int8_t", Int16: "int16_t", Int32: "int32_t", Int64: "int64_t",
	Bool: "bool", Char: "char", Errval: "ht_errval", Iref: "ht_iref", Cap: "struct ht_cap", Text: "struct ht_text"}

// declare is the declaration of name as a t.
func (c *cModule) declare(t *Type, name string) string {
	switch {
	case c.types[t] != "":
		return c.types[t] + " " + name
	case t.Kind == Array:
		return c.declare(t.Elem, fmt.Sprintf("%s[%d]", name, t.Len))
	}
	return cScalar[t.Kind] + " " + name
}

// typeName is t where C wants a type without a name, as sizeof does.
func (c *cModule) typeName(t *Type) string { return strings.TrimSpace(c.declare(t, "")) }

func (c *cModule) memberDecls(fields []cField) {
	for _, f := range fields {
		t := f.Type
		switch u := t.Under(); {
		case t.Kind == Slice:
			c.p("\tuint32_t %s; /* at most %d */", f.Len, t.Limit)
			c.p("\tconst %s;", c.declare(t.Elem, "*"+f.Name))
		case u.Kind == Text:
			c.p("\t%s; /* at most %d bytes */", c.declare(t, f.Name), u.Limit)
		default:
			c.p("\t%s;", c.declare(t, f.Name))
		}
	}
}

// typeDecls writes the declared types.
func (c *cModule) typeDecls() {
	for _, t := range c.Types {
		name := c.types[t]
		c.p("")
		c.comment("", t.Decl.Doc)
		switch t.Kind {
		case Struct:
			fields, _ := c.members(t.Fields)
			c.p("typedef struct %s {", name)
			c.memberDecls(fields)
			c.p("} %s;", name)
		case Enum:
			c.p("typedef uint32_t %s;\nenum {", name)
			for i, v := range c.values[t] {
				c.p("\t%s = %d,", v, i)
			}
			c.p("};")
		case Alias:
			c.p("typedef %s;", c.declare(t.Elem, name))
		default:
			bare := *t
			bare.Decl = nil
			c.p("typedef %s;", c.declare(&bare, name))
		}
	}
}

// comment writes an interface file's comment as C's.
func (c *cModule) comment(indent, text string) {
	if text == "" {
		return
	}
	c.p("%s/*", indent)
	for _, line := range commentLines(text) {
		c.p("%s", strings.TrimRight(indent+" * "+line, " "))
	}
	c.p("%s */", indent)
}

// commentLines are the lines of a comment, with nothing that could end a
// comment or go on beyond it.
func commentLines(text string) []string {
	var out []string
	for _, line := range strings.Split(strings.Trim(text, "\n"), "\n") {
		line = strings.Map(func(r rune) rune {
			if r < ' ' && r != '\t' || r == 0x7f || r == 0x2028 || r == 0x2029 {
				return ' '
			}
			return r
		}, line)
		for _, pair := range [][2]string{{"*/", "* /"}, {"/*", "/ *"}, {"??", "? ?"}} {
			for strings.Contains(line, pair[0]) {
				line = strings.ReplaceAll(line, pair[0], pair[1])
			}
		}
		out = append(out, strings.TrimRight(line, " \t\\"))
	}
	return out
}
