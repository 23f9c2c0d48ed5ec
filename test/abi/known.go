package abi

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// A Difference is a case that Hardtack answers in another way than Linux.
type Difference struct {
	Case
	Linux, Hardtack string
}

// absent stands for the answer to a case that a machine did not run, since it could not
// make the subject.
const absent = "(absent)"

// differences are the cases that were answered differently, in order.
func differences(linux, hardtack Answers) []Difference {
	var all []Difference
	for c, want := range linux {
		got, ok := hardtack[c]
		if !ok {
			got = absent
		}
		if got != want {
			all = append(all, Difference{c, want, got})
		}
	}
	for c, got := range hardtack {
		if _, ok := linux[c]; !ok {
			all = append(all, Difference{c, absent, got})
		}
	}
	slices.SortFunc(all, func(a, b Difference) int { return cmp.Compare(a.String(), b.String()) })
	return all
}

// A reason is why some cases differ.
type reason struct {
	text    string // its lines, with their "# "
	entries []*entry
}

// An entry is a line of the list of known differences: a table, a call, kinds and
// cases, each of the latter two several with commas between. A star stands for any
// characters.
type entry struct {
	table, call  string
	kinds, cases []string
	used         map[string]bool // the kinds and cases that differ now
}

// parseKnown reads the list.
func parseKnown(text string) ([]*reason, error) {
	var all []*reason
	fresh := true
	for n, line := range strings.Split(text, "\n") {
		switch f := strings.Fields(line); {
		case len(f) == 0:
			fresh = true
		case strings.HasPrefix(line, "#"):
			if fresh {
				all = append(all, &reason{})
			}
			fresh = false
			all[len(all)-1].text += line + "\n"
		case len(f) != 4 || len(all) == 0:
			return nil, fmt.Errorf("known:%d: %q is not a table, a call, kinds and cases below a reason", n+1, line)
		default:
			r := all[len(all)-1]
			r.entries = append(r.entries, &entry{f[0], f[1], strings.Split(f[2], ","), strings.Split(f[3], ","), map[string]bool{}})
			fresh = true
		}
	}
	return all, nil
}

// matches says whether a pattern with stars is a name's.
func matches(pattern, name string) bool {
	head, rest, star := strings.Cut(pattern, "*")
	if !star {
		return pattern == name
	}
	if !strings.HasPrefix(name, head) {
		return false
	}
	name = name[len(head):]
	for i := 0; i <= len(name); i++ {
		if matches(rest, name[i:]) {
			return true
		}
	}
	return false
}

// covers says whether the entry, which is about the case's call, names it, and remembers
// by what.
func (e *entry) covers(c Case) bool {
	var kinds, cases []string
	for _, k := range e.kinds {
		if matches(k, c.Kind) || matches(k, strings.TrimSuffix(strings.TrimSuffix(c.Kind, users[0]), users[1])) {
			kinds = append(kinds, k)
		}
	}
	for _, k := range e.cases {
		for _, r := range expand(k, "") {
			if matches(r.name, c.Name) {
				cases = append(cases, k)
				break
			}
		}
	}
	if kinds == nil || cases == nil {
		return false
	}
	for _, k := range kinds {
		e.used["kind "+k] = true
	}
	for _, k := range cases {
		e.used["case "+k] = true
	}
	return true
}

// gone are the parts of the entry that name no difference.
func (e *entry) gone() []string {
	var all []string
	for _, k := range e.kinds {
		if !e.used["kind "+k] {
			all = append(all, k)
		}
	}
	for _, k := range e.cases {
		if !e.used["case "+k] {
			all = append(all, k)
		}
	}
	return all
}

func (e *entry) String() string {
	return fmt.Sprintf("%s %s %s %s", e.table, e.call, strings.Join(e.kinds, ","), strings.Join(e.cases, ","))
}

// about are the entries that name a table's call.
func about(table, call string, known []*reason) []*entry {
	var all []*entry
	for _, r := range known {
		for _, e := range r.entries {
			if matches(e.table, table) && matches(e.call, call) {
				all = append(all, e)
			}
		}
	}
	return all
}

// check holds the differences against the list: new are those that it does not name,
// gone its lines, or parts of them, that name none.
func check(all []Difference, known []*reason) (unknown []Difference, gone []string) {
	of := map[[2]string][]*entry{} // a table's call
	for _, d := range all {
		place := [2]string{d.Table, d.Call}
		entries, ok := of[place]
		if !ok {
			entries = about(d.Table, d.Call, known)
			of[place] = entries
		}
		named := false
		for _, e := range entries {
			if e.covers(d.Case) {
				named = true
			}
		}
		if !named {
			unknown = append(unknown, d)
		}
	}
	for _, r := range known {
		for _, e := range r.entries {
			if parts := e.gone(); len(parts) > 0 {
				gone = append(gone, fmt.Sprintf("%v: %s", e, strings.Join(parts, " ")))
			}
		}
	}
	return unknown, gone
}

// shrink leaves out what names no difference, and puts the new ones at the end.
func shrink(known []*reason, unknown []Difference) string {
	var out strings.Builder
	for _, r := range known {
		var lines []string
		for _, e := range r.entries {
			e.kinds = slices.DeleteFunc(e.kinds, func(k string) bool { return !e.used["kind "+k] })
			e.cases = slices.DeleteFunc(e.cases, func(k string) bool { return !e.used["case "+k] })
			if len(e.kinds) > 0 && len(e.cases) > 0 {
				lines = append(lines, e.String())
			}
		}
		if lines != nil {
			fmt.Fprintf(&out, "%s%s\n\n", r.text, strings.Join(lines, "\n"))
		}
	}
	if len(unknown) > 0 {
		out.WriteString("# New: say why.\n")
		for _, e := range group(unknown) {
			fmt.Fprintf(&out, "%v\n", e)
		}
	}
	return out.String()
}

// group makes few entries of many differences: the cases of a kind together, then the
// kinds that have the same ones.
func group(all []Difference) []*entry {
	type place struct{ table, call, kind string }
	cases := map[place][]result{}
	var order []place
	for _, d := range all {
		p := place{d.Table, d.Call, d.Kind}
		if cases[p] == nil {
			order = append(order, p)
		}
		cases[p] = append(cases[p], result{d.Name, ""})
	}
	type line struct{ table, call, cases string }
	kinds := map[line][]string{}
	var lines []line
	for _, p := range order {
		slices.SortFunc(cases[p], func(a, b result) int { return natural(a.name, b.name) })
		var names []string
		for _, r := range fold(cases[p]) {
			names = append(names, r.name)
		}
		l := line{p.table, p.call, strings.Join(names, ",")}
		if kinds[l] == nil {
			lines = append(lines, l)
		}
		kinds[l] = append(kinds[l], p.kind)
	}
	var out []*entry
	for _, l := range lines {
		out = append(out, &entry{l.table, l.call, bothUsers(kinds[l]), strings.Split(l.cases, ","), nil})
	}
	return out
}

// bothUsers writes a kind once that is there for both users.
func bothUsers(kinds []string) []string {
	there := map[string]bool{}
	for _, k := range kinds {
		there[k] = true
	}
	for _, k := range kinds {
		base, ok := strings.CutSuffix(k, users[0])
		if ok && there[base+users[1]] {
			delete(there, k)
			delete(there, base+users[1])
			there[base] = true
		}
	}
	return slices.Sorted(maps.Keys(there))
}

// natural orders names by what is before their last number, then by the number.
func natural(a, b string) int {
	m, n := numbered.FindStringSubmatch(a), numbered.FindStringSubmatch(b)
	if m == nil || n == nil || m[1] != n[1] {
		return cmp.Compare(a, b)
	}
	return cmp.Or(cmp.Compare(len(m[2]), len(n[2])), cmp.Compare(m[2], n[2]))
}
