package overlay

import (
	"bytes"
	"fmt"
	"sort"
	"strconv"
	"strings"
)

// A hunk is one edit of a unified diff: at line start (from 1) of the original
// the lines old become the lines new. Lines keep their newlines.
type hunk struct {
	start    int
	old, new []string
}

// parsePatch reads a unified diff. Text before the first file is a description.
// Files go by the name after a/.
func parsePatch(text string) (map[string][]hunk, error) {
	files := map[string][]hunk{}
	lines := strings.SplitAfter(text, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	name := ""
	for i := 0; i < len(lines); {
		line := strings.TrimSuffix(lines[i], "\n")
		switch {
		case strings.HasPrefix(line, "--- "):
			from, ok := strings.CutPrefix(line, "--- a/")
			if !ok || i+1 >= len(lines) || strings.TrimSuffix(lines[i+1], "\n") != "+++ b/"+from || !cleanName(from) {
				return nil, fmt.Errorf("line %d: want \"--- a/FILE\" and \"+++ b/FILE\" of one file", i+1)
			}
			if files[from] != nil {
				return nil, fmt.Errorf("line %d: %s twice", i+1, from)
			}
			name = from
			i += 2
		case strings.HasPrefix(line, "@@"):
			if name == "" {
				return nil, fmt.Errorf("line %d: a hunk before its file", i+1)
			}
			h, next, err := parseHunk(lines, i)
			if err != nil {
				return nil, err
			}
			files[name] = append(files[name], h)
			i = next
		case name == "":
			i++
		default:
			return nil, fmt.Errorf("line %d: neither a file nor a hunk: %q", i+1, line)
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("no hunk")
	}
	return files, nil
}

// cleanName keeps paths inside GOROOT/src.
func cleanName(name string) bool {
	for _, part := range strings.Split(name, "/") {
		if part == "" || part == "." || part == ".." {
			return false
		}
	}
	return true
}

func parseHunk(lines []string, i int) (h hunk, next int, err error) {
	head := strings.Fields(strings.TrimSuffix(lines[i], "\n"))
	bad := fmt.Errorf("line %d: want \"@@ -LINE,COUNT +LINE,COUNT @@\"", i+1)
	if len(head) < 4 || head[0] != "@@" || head[3] != "@@" || head[1][0] != '-' || head[2][0] != '+' {
		return h, 0, bad
	}
	start, olds, ok := span(head[1][1:])
	_, news, ok2 := span(head[2][1:])
	if !ok || !ok2 {
		return h, 0, bad
	}
	h.start = start
	for next = i + 1; next < len(lines) && (len(h.old) < olds || len(h.new) < news); next++ {
		rest := lines[next][1:]
		switch lines[next][0] {
		case ' ':
			h.old, h.new = append(h.old, rest), append(h.new, rest)
		case '-':
			h.old = append(h.old, rest)
		case '+':
			h.new = append(h.new, rest)
		default:
			return h, 0, fmt.Errorf("line %d: want a line of the hunk", next+1)
		}
	}
	if len(h.old) != olds || len(h.new) != news {
		return h, 0, fmt.Errorf("line %d: the hunk has %d and %d lines, its head says %d and %d", i+1, len(h.old), len(h.new), olds, news)
	}
	if olds == 0 {
		return h, 0, fmt.Errorf("line %d: a hunk without context fits anywhere", i+1)
	}
	return h, next, nil
}

// span reads "LINE,COUNT" or "LINE".
func span(s string) (line, count int, ok bool) {
	a, b, some := strings.Cut(s, ",")
	count = 1
	line, err := strconv.Atoi(a)
	if err == nil && some {
		count, err = strconv.Atoi(b)
	}
	return line, count, err == nil && line > 0 && count >= 0
}

// apply makes all edits of one file; their line numbers are the original's.
func apply(data []byte, hunks []hunk) ([]byte, error) {
	sort.SliceStable(hunks, func(i, j int) bool { return hunks[i].start < hunks[j].start })
	lines := strings.SplitAfter(string(data), "\n")
	var out bytes.Buffer
	at := 0 // lines of the original that are done
	for _, h := range hunks {
		if h.start-1 < at {
			return nil, fmt.Errorf("two edits meet at line %d", h.start)
		}
		if h.start-1+len(h.old) > len(lines) {
			return nil, fmt.Errorf("an edit at line %d goes past the end", h.start)
		}
		for i, want := range h.old {
			if lines[h.start-1+i] != want {
				return nil, fmt.Errorf("line %d is %q, and the patch wants %q", h.start+i, lines[h.start-1+i], want)
			}
		}
		for ; at < h.start-1; at++ {
			out.WriteString(lines[at])
		}
		for _, s := range h.new {
			out.WriteString(s)
		}
		at += len(h.old)
	}
	for ; at < len(lines); at++ {
		out.WriteString(lines[at])
	}
	return out.Bytes(), nil
}
