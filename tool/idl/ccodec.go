package idl

import "fmt"

// The C codec is like Go's: what is plain is moved between a struct and a
// stretch of bytes of known length, the rest is appended at a cursor p and taken
// from a struct ht_reader.

func (c *cModule) temp(prefix string) string {
	c.vars++
	return fmt.Sprintf("%s%d", prefix, c.vars)
}

// loop opens a loop over n elements and returns its variable.
func (c *cModule) loop(in, n string) string {
	i := c.temp("i")
	c.p("%sfor (uint32_t %s = 0; %s < %s; %s++) {", in, i, i, n, i)
	return i
}

// put writes code that stores the plain value v at b + off.
func (c *cModule) put(in string, t *Type, off, v string) {
	t = t.Under()
	switch t.Kind {
	case Array:
		if isByte(t.Elem) {
			c.p("%smemcpy(b + %s, %s, %d);", in, off, v, t.Max)
			return
		}
		i := c.loop(in, fmt.Sprint(t.Len))
		c.put(in+"\t", t.Elem, fmt.Sprintf("%s + %d * %s", off, t.Elem.Max, i), v+"["+i+"]")
		c.p("%s}", in)
	case Struct:
		c.p("%sput_%s(b + %s, &%s);", in, c.types[t], off, v)
	default:
		c.p("%sht_put%d(b + %s, (uint%[2]d_t)%[4]s);", in, 8*width[t.Kind], off, v)
	}
}

// get writes code that loads the plain value at b + off into v, and returns
// false from the function where that is impossible.
func (c *cModule) get(in string, t *Type, off, v string) {
	t = t.Under()
	switch t.Kind {
	case Array:
		if isByte(t.Elem) {
			c.p("%smemcpy(%s, b + %s, %d);", in, v, off, t.Max)
			return
		}
		i := c.loop(in, fmt.Sprint(t.Len))
		c.get(in+"\t", t.Elem, fmt.Sprintf("%s + %d * %s", off, t.Elem.Max, i), v+"["+i+"]")
		c.p("%s}", in)
	case Struct:
		c.p("%sif (!get_%s(b + %s, &%s))\n%[1]s\treturn false;", in, c.types[t], off, v)
	case Bool:
		c.p("%sif (b[%s] > 1)\n%[1]s\treturn false;", in, off)
		c.p("%s%s = b[%s] == 1;", in, v, off)
	case Enum:
		c.p("%s%s = ht_load32(b + %s);", in, v, off)
		c.p("%sif (%s >= %d)\n%[1]s\treturn false;", in, v, len(t.Values))
	default:
		c.p("%s%s = (%s)ht_get%d(b + %s);", in, v, cScalar[t.Kind], 8*width[t.Kind], off)
	}
}

// grow writes code that adds to n what the encoding of f takes above its Min,
// and returns 0 from the function where it is over a limit: every message that
// needs this has a Min above 0.
func (c *cModule) growField(in string, f cField, m string) {
	t := f.Type.Under()
	if t.Kind != Slice {
		c.grow(in, t, m+f.Name)
		return
	}
	c.p("%sif (%s%s > %d)\n%[1]s\treturn 0;", in, m, f.Len, t.Limit)
	c.p("%sn += (size_t)%d * %s%s;", in, t.Elem.Min, m, f.Len)
	if !t.Elem.Fixed() {
		i := c.loop(in, m+f.Len)
		c.grow(in+"\t", t.Elem, m+f.Name+"["+i+"]")
		c.p("%s}", in)
	}
}

func (c *cModule) grow(in string, t *Type, v string) {
	t = t.Under()
	if t.Fixed() {
		return
	}
	switch t.Kind {
	case Text:
		c.p("%sif (%s.len > %d)\n%[1]s\treturn 0;\n%[1]sn += %[2]s.len;", in, v, t.Limit)
	case Array:
		i := c.loop(in, fmt.Sprint(t.Len))
		c.grow(in+"\t", t.Elem, v+"["+i+"]")
		c.p("%s}", in)
	case Struct:
		s := c.temp("s")
		c.p("%ssize_t %s = size_%s(&%s);", in, s, c.types[t], v)
		c.p("%sif (%s == 0)\n%[1]s\treturn 0;\n%[1]sn += %[2]s - %d;", in, s, t.Min)
	}
}

// appField writes code that stores f at p and moves p behind it.
func (c *cModule) appField(in string, f cField, m string) {
	t := f.Type.Under()
	if t.Kind != Slice {
		c.app(in, t, m+f.Name)
		return
	}
	n := m + f.Len
	c.p("%sht_put32(p, %s);\n%[1]sp += 4;", in, n)
	if isByte(t.Elem) {
		c.p("%sif (%s > 0)\n%[1]s\tmemcpy(p, %[3]s, %[2]s);\n%[1]sp += %[2]s;", in, n, m+f.Name)
		return
	}
	i := c.loop(in, n)
	c.app(in+"\t", t.Elem, m+f.Name+"["+i+"]")
	c.p("%s}", in)
}

func (c *cModule) app(in string, t *Type, v string) {
	t = t.Under()
	switch {
	case t.Kind == Text:
		c.p("%sp = ht_put_text(p, %s);", in, v)
	case t.Kind == Cap:
		c.p("%s*p++ = (uint8_t)%s.kind;\n%[1]s*(*caps)++ = %[2]s;", in, v)
	case t.Kind == Struct && plain(t):
		c.p("%sput_%s(p, &%s);\n%[1]sp += %[4]d;", in, c.types[t], v, t.Max)
	case t.Kind == Struct:
		caps := ""
		if t.Caps > 0 {
			caps = ", caps"
		}
		c.p("%sp = append_%s(p, &%s%s);", in, c.types[t], v, caps)
	case t.Kind == Array && isByte(t.Elem):
		c.p("%smemcpy(p, %s, %d);\n%[1]sp += %[3]d;", in, v, t.Max)
	case t.Kind == Array:
		i := c.loop(in, fmt.Sprint(t.Len))
		c.app(in+"\t", t.Elem, v+"["+i+"]")
		c.p("%s}", in)
	default:
		c.p("%sht_put%d(p, (uint%[2]d_t)%[3]s);\n%[1]sp += %[4]d;", in, 8*t.Max, v, t.Max)
	}
}

// takeField writes code that takes f from the reader r.
func (c *cModule) takeField(in string, f cField, m string) {
	t := f.Type.Under()
	if t.Kind != Slice {
		c.take(in, t, m+f.Name)
		return
	}
	n := m + f.Len
	c.p("%s%s = ht_take_count(r, %d, %d);", in, n, t.Limit, t.Elem.Min)
	if isByte(t.Elem) {
		c.p("%s%s = (const %s *)ht_take(r, %s);", in, m+f.Name, c.typeName(t.Elem), n)
		return
	}
	a := c.temp("a")
	// A named array decays to a pointer to its element; sizeof must see the
	// whole, so the pointer is declared to the type.
	c.p("%s%s = ht_reader_alloc(r, %s, sizeof(*%s));", in, c.declare(t.Elem, "(*"+a+")"), n, a)
	c.p("%sif (%s == NULL)\n%[1]s\t%[3]s = 0;", in, a, n)
	i := c.loop(in, n)
	c.take(in+"\t", t.Elem, a+"["+i+"]")
	c.p("%s}\n%[1]s%s = %s;", in, m+f.Name, c.constCast(t.Elem, a))
}

// constCast is the pointer a as the member's type: C11 does not turn a pointer
// to arrays into one to constant arrays by itself.
func (c *cModule) constCast(elem *Type, a string) string {
	if elem.Under().Kind != Array {
		return a
	}
	return "(const " + c.typeName(elem) + " *)" + a
}

func (c *cModule) take(in string, t *Type, v string) {
	t = t.Under()
	switch {
	case t.Kind == Text:
		c.p("%s%s = ht_take_text(r, %d);", in, v, t.Limit)
	case t.Kind == Cap:
		c.p("%s%s = ht_take_cap(r);", in, v)
	case t.Kind == Struct && plain(t):
		p := c.temp("p")
		c.p("%sconst uint8_t *%s = ht_take(r, %d);", in, p, t.Max)
		c.p("%sif (%s != NULL && !get_%s(%s, &%s))\n%[1]s\tht_reader_fail(r);", in, p, c.types[t], p, v)
	case t.Kind == Struct:
		c.p("%stake_%s(r, &%s);", in, c.types[t], v)
	case t.Kind == Array && isByte(t.Elem):
		p := c.temp("p")
		c.p("%sconst uint8_t *%s = ht_take(r, %d);", in, p, t.Max)
		c.p("%sif (%s != NULL)\n%[1]s\tmemcpy(%[3]s, %[2]s, %[4]d);", in, p, v, t.Max)
	case t.Kind == Array:
		i := c.loop(in, fmt.Sprint(t.Len))
		c.take(in+"\t", t.Elem, v+"["+i+"]")
		c.p("%s}", in)
	case t.Kind == Bool:
		c.p("%s%s = ht_take_bool(r);", in, v)
	case t.Kind == Enum:
		c.p("%s%s = ht_take_enum(r, %d);", in, v, len(t.Values))
	default:
		c.p("%s%s = (%s)ht_take%d(r);", in, v, cScalar[t.Kind], 8*t.Max)
	}
}

// codecs writes the functions that encode and decode the structs.
func (c *cModule) codecs() {
	for _, t := range c.Types {
		if t.Kind != Struct {
			continue
		}
		fields, _ := c.members(t.Fields)
		c.codec(c.types[t], "const "+c.types[t], c.types[t], plain(t), t.Min, t.Max, 0, t.Caps, fields)
	}
}

// codec writes the functions for one struct. The fields begin at off.
func (c *cModule) codec(name, in, out string, plain bool, least, most, off, caps int, fields []cField) {
	c.vars = 0
	if plain {
		c.p("\nstatic inline void put_%s(uint8_t *b, %s *m)\n{", name, in)
		at := off
		for _, f := range fields {
			c.put("\t", f.Type, fmt.Sprint(at), "m->"+f.Name)
			at += f.Type.Max
		}
		c.unused(len(fields), "b", "m")
		c.p("}\n\nstatic inline bool get_%s(const uint8_t *b, %s *m)\n{", name, out)
		c.vars = 0
		at = off
		for _, f := range fields {
			c.get("\t", f.Type, fmt.Sprint(at), "m->"+f.Name)
			at += f.Type.Max
		}
		c.unused(len(fields), "b", "m")
		c.p("\treturn true;\n}")
		return
	}
	if least != most {
		c.p("\n/* The length of m's encoding, or 0 if a length in it is over its limit. */")
		c.p("static size_t size_%s(%s *m)\n{\n\tsize_t n = %d;\n", name, in, least)
		for _, f := range fields {
			c.growField("\t", f, "m->")
		}
		c.p("\treturn n;\n}")
	}
	list := ""
	if caps > 0 {
		list = ", struct ht_cap **caps"
	}
	c.vars = 0
	c.p("\nstatic uint8_t *append_%s(uint8_t *p, %s *m%s)\n{", name, in, list)
	for _, f := range fields {
		c.appField("\t", f, "m->")
	}
	c.p("\treturn p;\n}")
	c.vars = 0
	c.p("\nstatic void take_%s(struct ht_reader *r, %s *m)\n{", name, out)
	for _, f := range fields {
		c.takeField("\t", f, "m->")
	}
	c.p("}")
}

// unused keeps the compiler quiet about arguments that no field needs.
func (c *cModule) unused(fields int, names ...string) {
	if fields > 0 {
		return
	}
	for _, n := range names {
		c.p("\t(void)%s;", n)
	}
}
