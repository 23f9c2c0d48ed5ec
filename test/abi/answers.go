package abi

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A Case is one call with one set of arguments on one kind of subject.
type Case struct {
	Table, Call, Kind, Name string
}

func (c Case) String() string { return c.Table + " " + c.Call + " " + c.Kind + " " + c.Name }

// users are what a kind's name ends with where root and others are answered differently.
var users = []string{"@0", "@1000"}

// Answers are what a machine says to each case: the result, or the error, and what
// else changed.
type Answers map[Case]string

// block is a line of a machine's text: kinds that answered the same.
type block struct {
	table, call string
	users       bool // user 1000 made the call too
	kinds       []string
	results     []result
}

type result struct{ name, value string }

// parse reads the text of a machine, or that of the kept answers.
func parse(text string) ([]block, error) {
	var all []block
	table, call, both := "", "", false
	for n, line := range strings.Split(text, "\n") {
		line = strings.TrimRight(line, "\r")
		if head, ok := strings.CutPrefix(line, "@ "); ok {
			f := strings.Fields(head)
			if len(f) < 2 {
				return nil, fmt.Errorf("line %d: %q", n+1, line)
			}
			table, call, both = f[0], f[1], len(f) > 2
			continue
		}
		kinds, results, ok := strings.Cut(line, "|")
		if !ok || table == "" {
			continue // a kernel's own message
		}
		b := block{table: table, call: call, users: both, kinds: strings.Fields(kinds)}
		for _, r := range strings.Fields(results) {
			name, value, ok := strings.Cut(r, "=")
			if !ok {
				return nil, fmt.Errorf("line %d: %q", n+1, r)
			}
			for _, n := range strings.Split(name, ",") {
				b.results = append(b.results, expand(n, value)...)
			}
		}
		all = append(all, b)
	}
	return all, nil
}

// answers gives each case of the blocks a line of its own, and each user.
func answers(blocks []block) (Answers, error) {
	all := Answers{}
	for _, b := range blocks {
		for _, kind := range b.kinds {
			kinds := []string{kind}
			if b.users && !strings.Contains(kind, "@") {
				kinds = []string{kind + users[0], kind + users[1]}
			}
			for _, k := range kinds {
				for _, r := range b.results {
					c := Case{b.table, b.call, k, r.name}
					if _, ok := all[c]; ok {
						return nil, fmt.Errorf("%v is there twice", c)
					}
					all[c] = r.value
				}
			}
		}
	}
	return all, nil
}

var numbered = regexp.MustCompile(`^(.*?)(\d+)$`)
var span = regexp.MustCompile(`^(.*?)(\d+)\.\.(\d+)$`)

// fold joins cases that are numbered one after another and gave the same.
func fold(results []result) []result {
	var out []result
	for i := 0; i < len(results); {
		j := i + 1
		m := numbered.FindStringSubmatch(results[i].name)
		if m != nil {
			from, err := strconv.Atoi(m[2])
			for err == nil && j < len(results) && results[j].value == results[i].value && results[j].name == m[1]+strconv.Itoa(from+j-i) {
				j++
			}
			if j-i > 1 && strconv.Itoa(from) == m[2] {
				out = append(out, result{fmt.Sprintf("%s%d..%d", m[1], from, from+j-i-1), results[i].value})
				i = j
				continue
			}
		}
		out = append(out, results[i])
		i++
	}
	return out
}

// expand is fold's reverse.
func expand(name, value string) []result {
	m := span.FindStringSubmatch(name)
	if m == nil {
		return []result{{name, value}}
	}
	from, _ := strconv.Atoi(m[2])
	to, _ := strconv.Atoi(m[3])
	var out []result
	for i := from; i <= to && i-from < 10000; i++ {
		out = append(out, result{m[1] + strconv.Itoa(i), value})
	}
	return out
}

// gather puts the names of all that gave the same before one value.
func gather(results []result) []result {
	var out []result
	at := map[string]int{}
	for _, r := range results {
		i, ok := at[r.value]
		if !ok {
			at[r.value] = len(out)
			out = append(out, r)
			continue
		}
		out[i].name += "," + r.name
	}
	return out
}

// format is the text in which answers are kept.
func format(blocks []block) string {
	var out strings.Builder
	table, call := "", ""
	for _, b := range blocks {
		if b.table != table || b.call != call {
			table, call = b.table, b.call
			fmt.Fprintf(&out, "@ %s %s%s\n", table, call, map[bool]string{true: " +1000"}[b.users])
		}
		fmt.Fprintf(&out, "%s |", strings.Join(b.kinds, " "))
		for _, r := range gather(fold(b.results)) {
			fmt.Fprintf(&out, " %s=%s", r.name, r.value)
		}
		out.WriteByte('\n')
	}
	return out.String()
}

// tablesOf are the tables of the blocks in their order.
func tablesOf(blocks []block) []string {
	var names []string
	for _, b := range blocks {
		if !slices.Contains(names, b.table) {
			names = append(names, b.table)
		}
	}
	return names
}
