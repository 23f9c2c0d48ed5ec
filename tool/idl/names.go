package idl

import "strings"

// initialisms are written in capitals in Go names, as Go has it.
var initialisms = map[string]bool{"api": true, "cpu": true, "fd": true, "gid": true, "http": true, "id": true, "io": true,
	"ip": true, "os": true, "pid": true, "rpc": true, "tcp": true, "udp": true, "uid": true, "url": true, "uuid": true}

// camel is a name of the interface file as an exported name of Go: client_id
// is ClientID. Names in capitals only are taken as words.
func camel(name string) string {
	if strings.ToUpper(name) == name {
		name = strings.ToLower(name)
	}
	var b strings.Builder
	for _, w := range strings.Split(name, "_") {
		switch {
		case w == "":
		case initialisms[strings.ToLower(w)]:
			b.WriteString(strings.ToUpper(w))
		default:
			b.WriteString(strings.ToUpper(w[:1]) + w[1:])
		}
	}
	s := b.String()
	if s == "" || !isLetter(s[0]) {
		return "X" + s // a name of underscores, or one that begins with a digit after them
	}
	return s
}

// names hands out names in one name space and remembers whose they are.
type names struct {
	what string // the name space, for errors
	of   map[string]Pos
}

func newNames(what string, reserved ...string) *names {
	n := &names{what: what, of: map[string]Pos{}}
	for _, r := range reserved {
		n.of[r] = Pos{}
	}
	return n
}

// take takes the first of the names that is free.
func (n *names) take(at Pos, source string, wanted ...string) (string, error) {
	for _, w := range wanted {
		if _, taken := n.of[w]; !taken {
			n.of[w] = at
			return w, nil
		}
	}
	last := wanted[len(wanted)-1]
	if first := n.of[last]; first.Line > 0 {
		return "", errorf(at, "%q would be called %s in %s, as does what is declared at %v", source, last, n.what, first)
	}
	return "", errorf(at, "%q would be called %s in %s, which has another meaning there", source, last, n.what)
}

// free takes a name of ours, which gives way to those of the interface.
func (n *names) free(name string) string {
	for {
		if _, taken := n.of[name]; !taken {
			n.of[name] = Pos{}
			return name
		}
		name += "X"
	}
}
