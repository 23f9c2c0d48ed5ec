package imports

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// goodLength is how many files a way may pass without a reason.
const goodLength = 7

// longWays are the ways that pass more files, with the reason.
var longWays = map[string]string{
	"A processor moves to another kernel":                  "two kernels take part, each with its processors, its nucleus and its monitor",
	"A system call: read(2) on a pipe":                     "three files take any call to its handler; descriptors, user buffers, waiting and page tables are parts that all files share",
	"An interrupt: a packet comes in":                      "the nucleus, the driver, the interface and the socket are four layers",
	"A message: write(2) on a Unix socket":                 "three files take any call to its handler",
	"A write to a file in memory":                          "three files take any call to its handler; user buffers and page tables are shared by all files",
	"A write to a file on a disk, until it is durable":     "two calls, write and fsync, and four layers: the page cache, ext4, the volume, the block layer",
	"A call between clusters":                              "the message library, the monitor and the nucleus are three layers",
	"A disk write: pwrite(2) on /dev/vda with O_DIRECT":    "a system call, the block layer and the driver are three layers",
	"A name is found, and a frame goes to another machine": "two ways in one: the look-up and the frame",
	"A typed message between processes on one processor":   "channels, their transport, the endpoint and the nucleus are four layers",
}

// aWay is a section of docs/paths.md with the files that its numbered steps name.
type aWay struct {
	title string
	files map[string]bool
}

var (
	stepLine = regexp.MustCompile(`^\d+\.`)
	fileName = regexp.MustCompile("`((?:[a-z0-9]+/)?[a-z0-9_/]+\\.(?:go|s|patch))`")
)

// ways reads the sections. A section without numbered steps counts as a whole. What
// starts "1.–3." begins with the first three steps of the way that it names.
func ways(t *testing.T, text string) (all []aWay) {
	first := map[string][]string{} // of "system call" and "page fault": files of steps 1 to 3
	for _, section := range strings.Split(text, "\n## ")[1:] {
		title, body, _ := strings.Cut(section, "\n")
		w := aWay{title, map[string]bool{}}
		numbered := regexp.MustCompile(`(?m)^1\.`).MatchString(body)
		step, in, folder := 0, !numbered, ""
		for line := range strings.Lines(body) {
			switch {
			case stepLine.MatchString(line):
				in = true
				fmt.Sscanf(line, "%d.", &step)
			case strings.TrimSpace(line) == "" && numbered:
				in = false
			}
			if !in {
				continue
			}
			if strings.HasPrefix(line, "1.–3.") {
				from := "A system call"
				if strings.Contains(line, "A page fault") {
					from = "A page fault"
				}
				if len(first[from]) == 0 {
					t.Errorf("%s: no steps of %q before it", title, from)
				}
				for _, f := range first[from] {
					w.files[f] = true
				}
				step = 3
			}
			for _, m := range fileName.FindAllStringSubmatch(line, -1) {
				name := m[1]
				if strings.Contains(name, "/") {
					folder = path.Dir(name)
				} else {
					name = path.Join(folder, name)
				}
				w.files[name] = true
				for _, from := range []string{"A system call", "A page fault"} {
					if step <= 3 && (strings.HasPrefix(title, from+":") || title == from) {
						first[from] = append(first[from], name)
					}
				}
			}
		}
		all = append(all, w)
	}
	return all
}

// TestPathLengths: docs/paths.md says how many files each way passes, all of them are
// there, and a long way has a reason.
func TestPathLengths(t *testing.T) {
	root := filepath.Join("..", "..")
	file := filepath.Join(root, "docs", "paths.md")
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	const begin, end = "-run TestPathLengths -update -->\n", "<!-- end of counts -->"
	head, rest, ok1 := strings.Cut(string(b), begin)
	old, tail, ok2 := strings.Cut(rest, end)
	if !ok1 || !ok2 {
		t.Fatal("no place for the table")
	}
	var table strings.Builder
	table.WriteString("| way | files | why so many |\n| --- | --- | --- |\n")
	for _, w := range ways(t, tail) {
		for f := range w.files {
			if _, err := os.Stat(filepath.Join(root, f)); err != nil {
				t.Errorf("%s: %v", w.title, err)
			}
		}
		why, long := longWays[w.title], len(w.files) > goodLength
		if long != (why != "") {
			t.Errorf("%s passes %d files; the reason for a long way is %q", w.title, len(w.files), why)
		}
		fmt.Fprintf(&table, "| %s | %d | %s |\n", w.title, len(w.files), why)
	}
	if *update {
		if err := os.WriteFile(file, []byte(head+begin+table.String()+end+tail), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if old != table.String() {
		t.Errorf("the table is not up to date (run with -update); it should be\n%s", table.String())
	}
}
