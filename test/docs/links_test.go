package docs_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// pages are all Markdown files of the project.
func pages(t *testing.T) (all []string) {
	t.Helper()
	out, err := exec.Command("git", "-C", root, "ls-files", "--cached", "--others", "--exclude-standard", "*.md").Output()
	if err != nil {
		t.Skip("not in a git checkout")
	}
	for _, name := range strings.Fields(string(out)) {
		if _, err := os.Stat(filepath.Join(root, name)); err == nil {
			all = append(all, name)
		}
	}
	return all
}

var (
	fenced = regexp.MustCompile("(?ms)^```.*?^```$")
	code   = regexp.MustCompile("`[^`\n]*`")
	link   = regexp.MustCompile(`\]\(([^)\s]*)\)`)
)

// prose is a page without what it quotes as code.
func prose(text string) string {
	return code.ReplaceAllString(fenced.ReplaceAllString(text, ""), "``")
}

// TestLinks: the files that pages link to are there, and so are the sections.
func TestLinks(t *testing.T) {
	found := 0
	for _, page := range pages(t) {
		for _, m := range link.FindAllStringSubmatch(prose(read(t, page)), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			found++
			file, section, _ := strings.Cut(m[1], "#")
			to := page
			if file != "" {
				to = filepath.Join(filepath.Dir(page), file)
			}
			if _, err := os.Stat(filepath.Join(root, to)); err != nil {
				t.Errorf("%s: %v", page, err)
			} else if section != "" && !anchors(read(t, to))[section] {
				t.Errorf("%s: %s has no section #%s", page, to, section)
			}
		}
	}
	if found < 100 {
		t.Errorf("only %d links found", found)
	}
}

var (
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	dropped = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
)

// anchors are those that forges make of a page's headings.
func anchors(text string) map[string]bool {
	all := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(fenced.ReplaceAllString(text, ""), -1) {
		all[strings.ReplaceAll(dropped.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-")] = true
	}
	return all
}

// TestIndex: docs/README.md leads to every page of docs, itself or by an index that it
// links to.
func TestIndex(t *testing.T) {
	linked := map[string]bool{}
	for _, index := range []string{"docs/README.md", "docs/bench/README.md", "docs/decisions/README.md"} {
		linked[index] = true
		for _, m := range link.FindAllStringSubmatch(read(t, index), -1) {
			file, _, _ := strings.Cut(m[1], "#")
			linked[filepath.Join(filepath.Dir(index), file)] = true
		}
	}
	for _, page := range pages(t) {
		if strings.HasPrefix(page, "docs/") && !linked[page] {
			t.Errorf("%s: no index links to it", page)
		}
	}
}

// TestDecisions: a decision is a page.
func TestDecisions(t *testing.T) {
	form := regexp.MustCompile(`^# (\d{4}): .`)
	found := 0
	for _, page := range pages(t) {
		if filepath.Dir(page) != "docs/decisions" || filepath.Base(page) == "README.md" {
			continue
		}
		found++
		text := read(t, page)
		if n := strings.Count(text, "\n"); n > 60 {
			t.Errorf("%s has %d lines; 60 at most", page, n)
		}
		if m := form.FindStringSubmatch(text); m == nil || !strings.HasPrefix(filepath.Base(page), m[1]+"-") {
			t.Errorf("%s: the first line is not its number and title", page)
		}
	}
	if found < 70 {
		t.Errorf("only %d decisions found", found)
	}
}
