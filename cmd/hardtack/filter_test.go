package main

import (
	"strings"
	"testing"

	"hardtack/tool/named"
)

func TestFilter(t *testing.T) {
	all := []*named.State{
		{Name: "web", Status: named.Up, Root: "site.tar"},
		{Name: "web2", Status: named.Exited, ExitCode: 3, Root: "site.tar"},
		{Name: "db", Status: named.Dead, ExitCode: 137, Root: "db.tar"},
	}
	for filters, want := range map[string]string{
		"":                          "web web2 db",
		"name=web":                  "web web2",
		"name=web2 name=db":         "web2 db",
		"status=running":            "web",
		"exited=3":                  "web2",
		"exited=0":                  "",
		"name=web status=exited":    "web2",
		"root=site.tar exited=137":  "",
		"status=dead status=exited": "web2 db",
	} {
		f, err := parseFilters(strings.Fields(filters))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, s := range all {
			if f.matches(s) {
				got = append(got, s.Name)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q lists %v, not %s", filters, got, want)
		}
	}
	for _, bad := range []string{"name", "status=up", "exited=x", "label=a"} {
		if _, err := parseFilters([]string{bad}); err == nil {
			t.Errorf("the filter %q is taken", bad)
		}
	}
}
