// Package docs_test holds the pages that name files and functions to the tree.
package docs_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

const root = "../.."

var (
	// A file with the functions, types or marks that are named right behind it.
	named  = regexp.MustCompile("`([\\w/.-]+\\.(?:go|s|c|patch))`((?:,?\\s+`[\\w.]+`)*)")
	ident  = regexp.MustCompile("`([\\w.]+)`")
	isFile = regexp.MustCompile(`\.(go|s|c|patch)$`)
	step   = regexp.MustCompile(`(?m)^(\d+)\. `)
)

// TestPaths reads docs/paths.md: each file is there and has the names that are given
// with it, other names are somewhere in the folders of the path, and no path has more
// than seven steps. A file without a folder is in that
// of the file named before it, or in one that was named in the same path.
func TestPaths(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs", "paths.md"))
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, section := range strings.Split(string(text), "\n## ")[1:] {
		title, body, _ := strings.Cut(section, "\n")
		for _, m := range step.FindAllStringSubmatch(body, -1) {
			if len(m[1]) > 1 || m[1] > "7" {
				t.Errorf("%s: step %s; a path has seven at most", title, m[1])
			}
		}
		var folders []string // named so far, the last first
		for _, m := range named.FindAllStringSubmatch(body, -1) {
			file, content := find(m[1], folders)
			if content == "" {
				t.Errorf("%s: %s is not there", title, m[1])
				continue
			}
			folders = append([]string{filepath.Dir(file)}, folders...)
			for _, id := range ident.FindAllStringSubmatch(m[2], -1) {
				if strings.HasSuffix(id[1], ".go") || strings.HasSuffix(id[1], ".s") {
					break // the next file
				}
				name := id[1][strings.LastIndexByte(id[1], '.')+1:]
				if !regexp.MustCompile(`\b` + name + `\b`).MatchString(content) {
					t.Errorf("%s: %s has no %s", title, file, id[1])
				}
				checked++
			}
		}
		for _, id := range ident.FindAllStringSubmatch(body, -1) {
			if name := id[1][strings.LastIndexByte(id[1], '.')+1:]; !isFile.MatchString(id[1]) && !within(folders, name) {
				t.Errorf("%s: none of the folders that are named there has %s", title, id[1])
			}
		}
	}
	if checked < 50 {
		t.Errorf("only %d names found in the page", checked)
	}
}

// find reads a file by the path that the page gives.
func find(name string, folders []string) (file, content string) {
	if !strings.Contains(name, "/") {
		for _, f := range folders {
			if text, err := os.ReadFile(filepath.Join(root, f, name)); err == nil {
				return filepath.Join(f, name), string(text)
			}
		}
	}
	text, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		return name, ""
	}
	return name, string(text)
}

// within reports whether a file of one of the folders has a word.
func within(folders []string, word string) bool {
	re := regexp.MustCompile(`\b` + word + `\b`)
	for _, f := range folders {
		files, _ := filepath.Glob(filepath.Join(root, f, "*"))
		for _, file := range files {
			if text, err := os.ReadFile(file); err == nil && isFile.MatchString(file) && re.Match(text) {
				return true
			}
		}
	}
	return false
}

// TestFolders reads docs/architecture.md: each folder in its table is there, and each
// folder at the top is in the table.
func TestFolders(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs", "architecture.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, ok := strings.Cut(string(text), "| folder | what is in it |")
	if !ok {
		t.Fatal("no table of folders")
	}
	table, _, _ = strings.Cut(table, "\n\n")
	in := map[string]bool{}
	for _, row := range strings.Split(table, "\n") {
		cells := strings.SplitN(row, "|", 3)
		if len(cells) < 3 {
			continue
		}
		for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cells[1], -1) {
			if _, err := os.Stat(filepath.Join(root, m[1])); err != nil {
				t.Errorf("the folder %s is not there", m[1])
			}
			in[strings.Split(m[1], "/")[0]] = true
		}
	}
	out, err := exec.Command("git", "-C", root, "ls-files").Output()
	if err != nil {
		t.Skip("not in a git checkout")
	}
	for _, file := range strings.Split(string(out), "\n") {
		if top, _, below := strings.Cut(file, "/"); below && !strings.HasPrefix(top, ".") && !in[top] {
			t.Errorf("the folder %s is not in the table", top)
			in[top] = true
		}
	}
}

// TestFigures reads the summary in docs/bench/README.md and the README: a row that a
// page of docs/bench has too says the same, and the figures of a row with a link, or
// below one, are on the page that is linked.
func TestFigures(t *testing.T) {
	bench := filepath.Join("docs", "bench")
	rows := map[string][]string{}
	for _, line := range strings.Split(read(t, filepath.Join(bench, "os.md")), "\n") {
		if c := cells(line); len(c) > 3 {
			rows[c[0]] = c[1:4]
		}
	}
	link := regexp.MustCompile(`\]\((\w+\.md)\)`)
	figure := regexp.MustCompile(`\d[\d,]*(?:\.\d+)?`)
	_, measured, _ := strings.Cut(read(t, filepath.Join(bench, "README.md")), "\n## The kernel\n")
	page, same, found := "", 0, 0
	for _, line := range strings.Split(measured, "\n") {
		c := cells(line)
		if len(c) != 4 || c[1] == "ours" || strings.HasPrefix(c[1], "Hardtack") || strings.HasPrefix(c[0], "---") {
			continue
		}
		if m := link.FindStringSubmatch(c[0]); m != nil {
			page = m[1]
		}
		if page == "" { // the tables beside Linux
			for i, want := range rows[c[0]] {
				want, _, _ = strings.Cut(want, " (") // without the range
				if c[i+1] != want {
					t.Errorf("%s: %s in the summary, %s on the page", c[0], c[i+1], want)
				}
			}
			if rows[c[0]] == nil {
				t.Errorf("%s: not on the page", c[0])
			}
			same++
			continue
		}
		for _, cell := range c[1:3] {
			shown := figure.FindString(cell)
			if shown == "" || !anyRounds(figure.FindAllString(read(t, filepath.Join(bench, page)), -1), shown) {
				t.Errorf("%s: %s has no figure that is %s", c[0], page, cell)
			}
			found++
		}
	}
	if same < 20 || found < 10 {
		t.Errorf("only %d rows and %d figures found", same, found)
	}
}

// TestReadme: the README is short, its figures are those of the pages that it links to,
// and so is the number of system calls.
func TestReadme(t *testing.T) {
	text := read(t, "README.md")
	if n := strings.Count(text, "\n"); n > 130 {
		t.Errorf("the README has %d lines; 130 at most", n)
	}
	linked := regexp.MustCompile(`^\[([^]]+)\]\((docs/bench/\w+\.md)\)`)
	rows := 0
	for _, line := range strings.Split(text, "\n") {
		c := cells(line)
		if len(c) != 4 {
			continue
		}
		m := linked.FindStringSubmatch(c[0])
		if m == nil {
			continue
		}
		rows++
		found := false
		for _, line := range strings.Split(read(t, m[2]), "\n") {
			if there := cells(line); len(there) > 3 && there[0] == m[1] {
				found = true
				for i := 1; i < 4; i++ {
					if want, _, _ := strings.Cut(there[i], " ("); c[i] != want {
						t.Errorf("%s: %s in the README, %s on the page", m[1], c[i], want)
					}
				}
			}
		}
		if !found {
			t.Errorf("%s has no row %q", m[2], m[1])
		}
	}
	if rows != 5 {
		t.Errorf("%d figures in the README, not 5", rows)
	}
	calls := regexp.MustCompile(`Of the (\d+) system calls of Linux 6\.1 on x86-64, (\d+)`).FindStringSubmatch(read(t, "docs/syscalls.md"))
	if calls == nil || !strings.Contains(text, calls[2]+" of Linux 6.1's "+calls[1]+" system calls") {
		t.Errorf("docs/syscalls.md says %q, the README something else", calls)
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// cells are those of a line of a table, or none.
func cells(line string) (all []string) {
	if !strings.HasPrefix(line, "|") {
		return nil
	}
	for _, c := range strings.Split(strings.Trim(line, "|"), "|") {
		all = append(all, strings.TrimSpace(c))
	}
	return all
}

// anyRounds reports whether one of the figures is the shown one when it is rounded to
// as many places.
func anyRounds(all []string, shown string) bool {
	shown = strings.ReplaceAll(shown, ",", "")
	_, places, _ := strings.Cut(shown, ".")
	for _, s := range all {
		v, err := strconv.ParseFloat(strings.ReplaceAll(s, ",", ""), 64)
		if err == nil && strconv.FormatFloat(v, 'f', len(places), 64) == shown {
			return true
		}
	}
	return false
}

// TestRooms: each folder at the top says what lives there, in a README or in the comment
// of its package.
func TestRooms(t *testing.T) {
	folders, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	comment := regexp.MustCompile(`(?m)^// Package \w+ `)
	for _, f := range folders {
		if !f.IsDir() || strings.HasPrefix(f.Name(), ".") || f.Name() == "bin" || f.Name() == "build" {
			continue
		}
		if _, err := os.Stat(filepath.Join(root, f.Name(), "README.md")); err == nil {
			continue
		}
		said := false
		files, _ := filepath.Glob(filepath.Join(root, f.Name(), "*.go"))
		for _, file := range files {
			text, err := os.ReadFile(file)
			said = said || err == nil && comment.Match(text)
		}
		if !said {
			t.Errorf("%s has neither a README nor a package comment", f.Name())
		}
	}
}
