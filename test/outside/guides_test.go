package outside_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A block of a guide: what stands between ``` lines.
type block struct {
	lang string // the first word behind the opening ```
	name string // the second: the file that it is
	text string
	line int
}

func blocks(t *testing.T, page string) (all []block) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	var in *block
	for i, line := range strings.Split(string(text), "\n") {
		info, fence := strings.CutPrefix(line, "```")
		switch {
		case fence && in == nil:
			lang, name, _ := strings.Cut(info, " ")
			in = &block{lang: lang, name: name, line: i + 1}
		case fence:
			all = append(all, *in)
			in = nil
		case in != nil:
			in.text += line + "\n"
		}
	}
	if in != nil {
		t.Fatalf("%s:%d: the block has no end", page, in.line)
	}
	return all
}

// TestGuides follows each guide from its top: a block with a file's name is written, a
// block of sh is run, and what follows as output is what that must print (… stands for
// anything in a line).
func TestGuides(t *testing.T) {
	pages, err := filepath.Glob(filepath.Join(root(t), "docs/guides/*.md"))
	if err != nil || len(pages) < 6 {
		t.Fatalf("%d guides, %v", len(pages), err)
	}
	at := prefix(t)
	for _, page := range pages {
		t.Run(strings.TrimSuffix(filepath.Base(page), ".md"), func(t *testing.T) {
			o := newOutside(t, at, filepath.Join(at, "share/hardtack/go"))
			if strings.HasSuffix(page, "affinity.md") {
				// The patched standard library as other tests have compiled it.
				o.env = append(o.env, "GOFLAGS=")
			}
			follow(t, page, o)
		})
	}
}

func follow(t *testing.T, page string, o *outside) {
	var printed string
	programs, compared := 0, 0
	for _, b := range blocks(t, page) {
		switch {
		case b.lang == "sh" && b.name == "install": // TestTutorialInstalls
		case b.name != "":
			o.put(t, b.name, b.text)
			if b.lang == "go" || b.lang == "c" {
				programs++
			}
		case b.lang == "sh" && strings.Contains(b.text, "pkg-config") && !has("pkg-config"):
			t.Skip("no pkg-config: what follows is not tried")
		case b.lang == "sh":
			printed = o.sh(t, b.text)
		case b.lang == "output":
			if !matches(printed, b.text) {
				t.Errorf("%s:%d: printed\n%s\nwant\n%s", page, b.line, printed, b.text)
			}
			compared++
		}
	}
	if programs == 0 || compared == 0 {
		t.Errorf("%s has %d programs and %d outputs", page, programs, compared)
	}
	o.sums(t)
}

func has(command string) bool {
	_, err := exec.LookPath(command)
	return err == nil
}

// matches compares output with what the page shows of it.
func matches(out, want string) bool {
	want = regexp.QuoteMeta(strings.TrimSpace(want))
	re := regexp.MustCompile("^" + strings.ReplaceAll(want, "…", ".*") + "$")
	return re.MatchString(strings.TrimSpace(out))
}

// TestMatches: the comparison compares.
func TestMatches(t *testing.T) {
	for _, c := range []struct {
		out, want string
		ok        bool
	}{
		{"a\nb\n", "a\nb\n", true},
		{"a\nb\n", "a\n", false},
		{"took 31ns.\n", "took …ns.\n", true},
		{"took\n31ns.\n", "took …ns.\n", false},
		{"a.b", "a+b", false},
	} {
		if matches(c.out, c.want) != c.ok {
			t.Errorf("%q matches %q: %v", c.out, c.want, !c.ok)
		}
	}
}
