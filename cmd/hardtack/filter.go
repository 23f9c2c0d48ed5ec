package main

import (
	"slices"
	"strconv"
	"strings"

	"hardtack/tool/fault"
	"hardtack/tool/named"
)

// filter says which machines ps lists, as docker's flag does: of one kind one must match, of
// each kind that is given.
type filter struct {
	by    map[string][]string
	ended bool // it asks for machines that have ended
}

var machineStates = []string{named.Created, named.Up, named.Restarting, named.Exited, named.Dead}

func parseFilters(list []string) (*filter, error) {
	f := &filter{by: map[string][]string{}}
	for _, s := range list {
		what, value, ok := strings.Cut(s, "=")
		if !ok {
			return nil, fault.Bad("--filter %q: want what=value, as in name=web", s)
		}
		switch what {
		case "name", "root":
		case "status":
			if !slices.Contains(machineStates, value) {
				return nil, fault.Bad("--filter %q: the status is %s", s, strings.Join(machineStates, ", "))
			}
			f.ended = f.ended || value == named.Exited || value == named.Dead
		case "exited":
			if _, err := strconv.Atoi(value); err != nil {
				return nil, fault.Bad("--filter %q: want an exit status", s)
			}
			f.ended = true
		default:
			return nil, fault.Bad("--filter %q: want name, status, exited or root", s)
		}
		f.by[what] = append(f.by[what], value)
	}
	return f, nil
}

// matches reports whether a machine is wanted.
func (f *filter) matches(s *named.State) bool {
	for what, values := range f.by {
		if !slices.ContainsFunc(values, func(v string) bool {
			switch what {
			case "name":
				return strings.Contains(s.Name, v)
			case "root":
				return s.Root == v
			case "exited":
				return (s.Status == named.Exited || s.Status == named.Dead) && strconv.Itoa(s.ExitCode) == v
			}
			return s.Status == v
		}) {
			return false
		}
	}
	return true
}
