package wire

import (
	"fmt"
	"reflect"
	"strings"

	"hardtack/msg"
)

var capType = reflect.TypeFor[msg.Cap]()

// shown is how many elements of an array are shown.
const shown = 16

// Format shows a message to people: its name, and its fields' names and values
// in turn.
func Format(name string, fields ...any) string {
	var b strings.Builder
	b.WriteString(name + "{")
	for i := 0; i+1 < len(fields); i += 2 {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%v: ", fields[i])
		format(&b, reflect.ValueOf(fields[i+1]))
	}
	b.WriteString("}")
	return b.String()
}

func format(b *strings.Builder, v reflect.Value) {
	if s, ok := v.Interface().(fmt.Stringer); ok {
		b.WriteString(s.String())
		return
	}
	switch v.Kind() {
	case reflect.String:
		if s := v.String(); len(s) > 4*shown {
			fmt.Fprintf(b, "%q… (%d)", s[:4*shown], len(s))
		} else {
			fmt.Fprintf(b, "%q", s)
		}
	case reflect.Slice, reflect.Array:
		b.WriteString("[")
		for i := range min(v.Len(), shown) {
			if i > 0 {
				b.WriteString(" ")
			}
			format(b, v.Index(i))
		}
		if v.Len() > shown {
			fmt.Fprintf(b, " … (%d)", v.Len())
		}
		b.WriteString("]")
	case reflect.Struct:
		if v.Type() == capType {
			b.WriteString("cap")
			return
		}
		b.WriteString("{")
		for i := range v.NumField() {
			if i > 0 {
				b.WriteString(", ")
			}
			b.WriteString(v.Type().Field(i).Name + ": ")
			format(b, v.Field(i))
		}
		b.WriteString("}")
	default:
		fmt.Fprint(b, v.Interface())
	}
}
