package idl

import (
	"fmt"
	"strings"
)

// The codec of a type is one of two kinds. What is plain (one length, no caps)
// is moved between a Go value and a pointer to an array of just its length, so
// that the compiler can drop every check of bounds; the rest is appended to a
// slice and taken from a wire.Reader.

// plain says that all values have one length, and no caps.
func plain(t *Type) bool { return t.Fixed() && t.Caps == 0 }

// checked says that not every byte string of the right length is a value.
func checked(t *Type) bool {
	t = t.Under()
	switch t.Kind {
	case Bool, Enum:
		return true
	case Array:
		return checked(t.Elem)
	case Struct:
		for _, f := range t.Fields {
			if checked(f.Type) {
				return true
			}
		}
	}
	return false
}

// temp is a name for a variable of the generated code.
func (g *goPackage) temp(prefix string) string {
	g.bufs++
	return fmt.Sprintf("%s%d", prefix, g.bufs)
}

// unsigned is how encoding/binary calls an integer of w bytes.
func unsigned(w int) string { return fmt.Sprintf("Uint%d", 8*w) }

// put writes code that stores the plain value v at b[off:], b being a pointer
// to an array.
func (g *goPackage) put(t *Type, b string, off int, v string) {
	t = t.Under()
	switch t.Kind {
	case Bool:
		g.p("if %s {\n%s[%d] = 1\n} else {\n%[2]s[%[3]d] = 0\n}", v, b, off)
	case Array:
		if isByte(t.Elem) {
			g.p("copy(%s[%d:%d], %s[:])", b, off, off+t.Max, v)
			return
		}
		i := g.temp("i")
		g.p("for %s := range %s {", i, v)
		sub := g.window(b, fmt.Sprintf("%d+%d*%s", off, t.Elem.Max, i), t.Elem.Max)
		g.put(t.Elem, sub, 0, v+"["+i+"]")
		g.p("}")
	case Struct:
		g.p("put%s((*[%d]byte)(%s[%d:%d]), &%s)", g.types[t], t.Max, b, off, off+t.Max, v)
	default:
		w := width[t.Kind]
		if w == 1 {
			g.p("%s[%d] = %s", b, off, convert("byte", t.Kind, v))
		} else {
			g.p("binary.LittleEndian.Put%s(%s[%d:%d], %s)", unsigned(w), b, off, off+w, convert(strings.ToLower(unsigned(w)), t.Kind, v))
		}
	}
}

// convert is v as the unsigned type want.
func convert(want string, k Kind, v string) string {
	if isUnsigned(k) {
		return v
	}
	return want + "(" + v + ")"
}

func isUnsigned(k Kind) bool { return k <= Uint64 || k == Char }

// window is a pointer to the w bytes of b at off, as a new variable.
func (g *goPackage) window(b, off string, w int) string {
	sub := g.temp("b")
	g.p("%s := (*[%d]byte)(%s[%s:])", sub, w, b, off)
	return sub
}

func isByte(t *Type) bool { k := t.Under().Kind; return k == Uint8 || k == Char }

// get writes code that loads the plain value at b[off:] into v, and returns
// false from the function where that is impossible.
func (g *goPackage) get(t *Type, b string, off int, v string) {
	named := g.goType(t)
	t = t.Under()
	switch t.Kind {
	case Bool:
		g.p("if %s[%d] > 1 {\nreturn false\n}\n%s = %[1]s[%[2]d] == 1", b, off, v)
	case Enum:
		e := g.temp("e")
		g.p("%s := binary.LittleEndian.Uint32(%s[%d:%d])", e, b, off, off+4)
		g.p("if %s >= %d {\nreturn false\n}\n%s = %s(%[1]s)", e, len(t.Values), v, g.types[t])
	case Array:
		if isByte(t.Elem) {
			g.p("copy(%s[:], %s[%d:%d])", v, b, off, off+t.Max)
			return
		}
		i := g.temp("i")
		g.p("for %s := range %s {", i, v)
		sub := g.window(b, fmt.Sprintf("%d+%d*%s", off, t.Elem.Max, i), t.Elem.Max)
		g.get(t.Elem, sub, 0, v+"["+i+"]")
		g.p("}")
	case Struct:
		call := fmt.Sprintf("get%s((*[%d]byte)(%s[%d:%d]), &%s)", g.types[t], t.Max, b, off, off+t.Max, v)
		if checked(t) {
			g.p("if !%s {\nreturn false\n}", call)
		} else {
			g.p("%s", call)
		}
	default:
		w := width[t.Kind]
		load := fmt.Sprintf("%s[%d]", b, off)
		if w > 1 {
			load = fmt.Sprintf("binary.LittleEndian.%s(%s[%d:%d])", unsigned(w), b, off, off+w)
		}
		if !isUnsigned(t.Kind) {
			load = named + "(" + load + ")"
		}
		g.p("%s = %s", v, load)
	}
}

// grow writes code that adds to n what the encoding of v takes above t.Min, and
// returns -1 from the function where v is over a limit.
func (g *goPackage) grow(t *Type, v string) {
	t = t.Under()
	if t.Fixed() {
		return
	}
	switch t.Kind {
	case Text:
		g.p("if len(%s) > %d {\nreturn -1\n}\nn += len(%[1]s)", v, t.Limit)
	case Slice:
		g.p("if len(%s) > %d {\nreturn -1\n}", v, t.Limit)
		if t.Elem.Min == 1 {
			g.p("n += len(%s)", v)
		} else {
			g.p("n += %d * len(%s)", t.Elem.Min, v)
		}
		g.growEach(t.Elem, v)
	case Array:
		g.growEach(t.Elem, v)
	case Struct:
		s := g.temp("s")
		g.p("%s := size%s(&%s)\nif %[1]s < 0 {\nreturn -1\n}\nn += %[1]s - %[4]d", s, g.types[t], v, t.Min)
	}
}

func (g *goPackage) growEach(elem *Type, v string) {
	if elem.Fixed() {
		return
	}
	i := g.temp("i")
	g.p("for %s := range %s {", i, v)
	g.grow(elem, v+"["+i+"]")
	g.p("}")
}

// app writes code that appends the encoding of v to b. Its caps go to caps.
func (g *goPackage) app(t *Type, v string) {
	t = t.Under()
	switch {
	case t.Kind == Text:
		g.p("b = binary.LittleEndian.AppendUint32(b, uint32(len(%s)))\nb = append(b, %[1]s...)", v)
	case t.Kind == Slice:
		g.p("b = binary.LittleEndian.AppendUint32(b, uint32(len(%s)))", v)
		if isByte(t.Elem) {
			g.p("b = append(b, %s...)", v)
			return
		}
		g.appEach(t.Elem, v)
	case t.Kind == Cap:
		g.p("b = append(b, %s.Kind())\n*caps = append(*caps, %[1]s)", v)
	case t.Kind == Struct && plain(t):
		g.p("b = b[:len(b)+%d]\nput%s((*[%[1]d]byte)(b[len(b)-%[1]d:]), &%[3]s)", t.Max, g.types[t], v)
	case t.Kind == Struct:
		if t.Caps > 0 {
			g.p("b = append%s(b, &%s, caps)", g.types[t], v)
		} else {
			g.p("b = append%s(b, &%s)", g.types[t], v)
		}
	case t.Kind == Array && isByte(t.Elem):
		g.p("b = append(b, %s[:]...)", v)
	case t.Kind == Array:
		g.appEach(t.Elem, v)
	case t.Kind == Bool:
		g.p("if %s {\nb = append(b, 1)\n} else {\nb = append(b, 0)\n}", v)
	case t.Max == 1:
		g.p("b = append(b, %s)", convert("byte", t.Kind, v))
	default:
		u := unsigned(t.Max)
		g.p("b = binary.LittleEndian.Append%s(b, %s)", u, convert(strings.ToLower(u), t.Kind, v))
	}
}

func (g *goPackage) appEach(elem *Type, v string) {
	i := g.temp("i")
	g.p("for %s := range %s {", i, v)
	g.app(elem, v+"["+i+"]")
	g.p("}")
}

// take writes code that takes v from the wire.Reader r.
func (g *goPackage) take(t *Type, v string) {
	named := g.goType(t)
	t = t.Under()
	switch {
	case t.Kind == Text:
		g.p("%s = r.Text(%d)", v, t.Limit)
	case t.Kind == Slice && isByte(t.Elem):
		g.p("%s = r.Bytes(%d)", v, t.Limit)
	case t.Kind == Slice:
		g.p("%s = wire.Resize(%[1]s, r.Count(%d, %d))", v, t.Limit, t.Elem.Min)
		g.takeEach(t.Elem, v)
	case t.Kind == Cap:
		g.p("%s = r.Cap()", v)
	case t.Kind == Struct && plain(t):
		call := fmt.Sprintf("get%s((*[%d]byte)(p), &%s)", g.types[t], t.Max, v)
		if checked(t) {
			g.p("if p := r.Take(%d); p != nil && !%s {\nr.Fail(%q)\n}", t.Max, call, "no "+t.Name)
		} else {
			g.p("if p := r.Take(%d); p != nil {\n%s\n}", t.Max, call)
		}
	case t.Kind == Struct:
		g.p("take%s(r, &%s)", g.types[t], v)
	case t.Kind == Array && isByte(t.Elem):
		g.p("copy(%s[:], r.Take(%d))", v, t.Len)
	case t.Kind == Array:
		g.takeEach(t.Elem, v)
	case t.Kind == Bool:
		g.p("%s = r.Bool()", v)
	case t.Kind == Enum:
		g.p("%s = %s(r.Enum(%d))", v, g.types[t], len(t.Values))
	default:
		load := "r." + unsigned(t.Max) + "()"
		if !isUnsigned(t.Kind) {
			load = named + "(" + load + ")"
		}
		g.p("%s = %s", v, load)
	}
}

func (g *goPackage) takeEach(elem *Type, v string) {
	i := g.temp("i")
	g.p("for %s := range %s {", i, v)
	g.take(elem, v+"["+i+"]")
	g.p("}")
}

// codecs writes the functions that encode and decode the structs.
func (g *goPackage) codecs() {
	for _, t := range g.Types {
		if t.Kind != Struct {
			continue
		}
		name := g.types[t]
		fields, _ := goFields(t.Fields)
		if plain(t) {
			g.putFunc("put"+name, name, t.Max, fields)
			g.getFunc("get"+name, name, t.Max, fields, checked(t))
			continue
		}
		if !t.Fixed() {
			g.sizeFunc(name, t.Min, fields)
		}
		caps := ""
		if t.Caps > 0 {
			caps = ", caps *[]msg.Cap"
		}
		g.p("\nfunc append%s(b []byte, m *%[1]s%s) []byte {", name, caps)
		g.bufs = 0
		for _, f := range fields {
			g.app(f.Type, "m."+f.Name)
		}
		g.p("return b\n}")
		g.p("\nfunc take%s(r *wire.Reader, m *%[1]s) {", name)
		g.bufs = 0
		for _, f := range fields {
			g.take(f.Type, "m."+f.Name)
		}
		g.p("}")
	}
}

// putFunc writes a function that stores a plain value of so many bytes.
func (g *goPackage) putFunc(fn, typ string, size int, fields []goField) {
	g.bufs = 0
	off := 0
	g.p("\nfunc %s(b *[%d]byte, m *%s) {", fn, size, typ)
	for _, f := range fields {
		g.put(f.Type, "b", off, "m."+f.Name)
		off += f.Type.Max
	}
	g.p("}")
}

func (g *goPackage) getFunc(fn, typ string, size int, fields []goField, check bool) {
	g.bufs = 0
	off := 0
	result := ""
	if check {
		result = " bool"
	}
	g.p("\nfunc %s(b *[%d]byte, m *%s)%s {", fn, size, typ, result)
	for _, f := range fields {
		g.get(f.Type, "b", off, "m."+f.Name)
		off += f.Type.Max
	}
	if check {
		g.p("return true")
	}
	g.p("}")
}

// sizeFunc writes a function that says how long the encoding of a value is.
func (g *goPackage) sizeFunc(name string, least int, fields []goField) {
	g.bufs = 0
	g.p("\n// size%s is the length of m's encoding, or -1 if a length in it is over its limit.", name)
	g.p("func size%s(m *%[1]s) int {\nn := %d", name, least)
	for _, f := range fields {
		g.grow(f.Type, "m."+f.Name)
	}
	g.p("return n\n}")
}
