package main

import "testing"

func TestSection(t *testing.T) {
	const page = "# Page\n\n## One\n\nfirst\n\n## Two\n\nsecond\n"
	for title, want := range map[string]string{"\n## One\n": "\nfirst\n", "\n## Two\n": "\nsecond\n"} {
		if got, err := section(page, title); err != nil || got != want {
			t.Errorf("%q: %q, %v; want %q", title, got, err, want)
		}
	}
	if _, err := section(page, "\n## Three\n"); err == nil {
		t.Error("a section that is not there was found")
	}
}
