package idl

import (
	"crypto/sha256"
	"fmt"
	"strings"
)

// FingerprintBytes is the length of a fingerprint.
const FingerprintBytes = 16

// Fingerprint identifies what an interface means on the wire. It depends on the
// names and numbers of the interface and its messages, on the names, order and
// types of their fields, on the lengths, fields and values of those types, and on
// the names and order of errors. It
// does not depend on the names of types, aliases, lengths and files, on
// descriptions, comments and annotations, nor on declared types that no message
// uses. Each part is hashed with SHA-256 over the hashes of its parts.
func (i *Interface) Fingerprint() [FingerprintBytes]byte {
	h := hasher{}
	lines := []string{fmt.Sprintf("hardtack interface 1 %s", i.Decl.Name)}
	for _, m := range i.Messages {
		lines = append(lines, fmt.Sprintf("%d %d %s", m.Num, m.Role, m.Name()), h.fields(m.Fields))
	}
	for n, e := range i.Errors {
		lines = append(lines, fmt.Sprintf("error %d %s", n+1, e.Name))
	}
	sum := sha256.Sum256([]byte(strings.Join(lines, "\n")))
	return [FingerprintBytes]byte(sum[:FingerprintBytes])
}

// hasher remembers the hashes of types: a small file can name a large one often.
type hasher map[*Type]string

func (h hasher) fields(fs []*Field) string {
	var b strings.Builder
	for _, f := range fs {
		fmt.Fprintf(&b, "%s %s\n", f.Name, h.typ(f.Type))
	}
	return digest(b.String())
}

func (h hasher) typ(t *Type) string {
	t = t.Under()
	if s, ok := h[t]; ok {
		return s
	}
	var s string
	switch t.Kind {
	case Text:
		s = fmt.Sprintf("text %d", t.Limit)
	case Slice:
		s = digest(fmt.Sprintf("slice %d %s", t.Limit, h.typ(t.Elem)))
	case Array:
		s = digest(fmt.Sprintf("array %d %s", t.Len, h.typ(t.Elem)))
	case Struct:
		s = digest("struct " + h.fields(t.Fields))
	case Enum:
		var b strings.Builder
		for _, v := range t.Values {
			b.WriteString(" " + v.Name)
		}
		s = digest("enum" + b.String())
	default:
		s = scalarName[t.Kind]
	}
	h[t] = s
	return s
}

// scalarName is part of the fingerprint: never change one.
var scalarName = [...]string{Uint8: "uint8", Uint16: "uint16", Uint32: "uint32", Uint64: "uint64",
	Int8: "int8", Int16: "int16", Int32: "int32", Int64: "int64",
	Bool: "bool", Char: "char", Errval: "errval", Iref: "iref", Cap: "cap"}

func digest(s string) string {
	sum := sha256.Sum256([]byte(s))
	return fmt.Sprintf("%x", sum[:])
}
