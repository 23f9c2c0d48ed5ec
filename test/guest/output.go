package guest

import (
	"strings"
)

// A result is what one test of a program printed, and how it ended.
type result struct {
	lines []string
	end   string // PASS, FAIL: why, or empty when its end never came
}

// A section is the output of one program.
type section struct {
	order   []string
	tests   map[string]*result
	verdict string // the driver's line, without the time; empty when it never came
}

// parse takes the driver's output apart: program name → section. done is true
// when the driver reached its end.
func parse(output string) (sections map[string]*section, order []string, done bool) {
	sections = map[string]*section{}
	var now *section
	var test *result
	for _, line := range strings.Split(output, "\n") {
		line = strings.TrimRight(line, "\r")
		if rest, ok := strings.CutPrefix(line, "guesttest: "); ok {
			word, rest, _ := strings.Cut(rest, " ")
			switch word {
			case "RUN":
				now = &section{tests: map[string]*result{}}
				sections[rest] = now
				order = append(order, rest)
				test = nil
			case "PASS", "FAIL":
				if now != nil {
					if i := strings.LastIndex(rest, " ("); i >= 0 {
						rest = rest[:i]
					}
					now.verdict = word + " " + rest
				}
				now, test = nil, nil
			case "done":
				done = true
			}
			continue
		}
		if now == nil || line == "" {
			continue
		}
		if name, ok := strings.CutPrefix(line, "=== RUN   "); ok {
			test = &result{}
			now.order = append(now.order, name)
			now.tests[name] = test
			continue
		}
		if test == nil {
			continue
		}
		if rest, ok := strings.CutPrefix(line, "--- "); ok {
			end, name, _ := strings.Cut(rest, ": ")
			_, why, _ := strings.Cut(name, ": ")
			test.end = end
			if why != "" && end == "FAIL" {
				test.end += ": " + why
			}
			test = nil
			continue
		}
		test.lines = append(test.lines, line)
	}
	return sections, order, done
}

// difference says where two outputs first differ, with some lines around it.
func difference(want, got *result) string {
	i := 0
	for i < len(want.lines) && i < len(got.lines) && want.lines[i] == got.lines[i] {
		i++
	}
	if i == len(want.lines) && i == len(got.lines) && want.end == got.end {
		return ""
	}
	var b strings.Builder
	for k := max(0, i-2); k < i; k++ {
		b.WriteString("         " + want.lines[k] + "\n")
	}
	show := func(who string, r *result) {
		for k := i; k < min(len(r.lines), i+6); k++ {
			b.WriteString(who + r.lines[k] + "\n")
		}
		if len(r.lines) < i+6 {
			end := r.end
			if end == "" {
				end = "(its end never came)"
			}
			b.WriteString(who + "--- " + end + "\n")
		}
	}
	show("Linux    ", want)
	show("Hardtack ", got)
	return b.String()
}
