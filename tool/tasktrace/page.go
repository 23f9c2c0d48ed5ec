package tasktrace

import (
	"bufio"
	"fmt"
	"html"
	"io"
	"sort"
)

// The colours of the spans, and the order of the columns in the table.
var kinds = []struct{ name, colour string }{
	{"run", "#2f6f9f"},
	{"stolen task", "#58a55c"},
	{"join", "#e0b040"},
	{"blocked", "#c07030"},
	{"without seat", "#c03030"},
	{"parked", "#dddddd"},
}

func colour(name string) string {
	for _, k := range kinds {
		if k.name == name {
			return k.colour
		}
	}
	return "#9060b0"
}

const (
	pageWidth = 1200.0
	rowHeight = 16.0
	maxBoxes  = 20000 // drawn in a lane; the table counts all
)

// WritePage writes the page as one HTML file.
func (t *Trace) WritePage(out io.Writer, title string) error {
	w := bufio.NewWriter(out)
	fmt.Fprintf(w, `<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>%s</title>
<style>
body { font: 14px sans-serif; margin: 1.5em; }
table { border-collapse: collapse; margin: 1em 0; }
td, th { padding: 2px 10px; text-align: right; border-bottom: 1px solid #ddd; }
th:first-child, td:first-child { text-align: left; }
.key { display: inline-block; width: 12px; height: 12px; margin: 0 4px 0 14px; }
</style></head><body>
<h1>%[1]s</h1>
<p>%d workers' lanes, %.3f ms.</p>
<p>`, html.EscapeString(title), len(t.Lanes), t.End/1000)
	for _, k := range kinds {
		fmt.Fprintf(w, `<span class="key" style="background:%s"></span>%s`, k.colour, k.name)
	}
	fmt.Fprint(w, `<span class="key" style="background:#fff;border:1px solid #999"></span>looking for work</p>`+"\n")
	t.timeline(w)
	t.table(w)
	fmt.Fprint(w, "</body></html>\n")
	return w.Flush()
}

func (t *Trace) timeline(w io.Writer) {
	x := func(at float64) float64 {
		if t.End == 0 {
			return 0
		}
		return 100 + at/t.End*(pageWidth-110)
	}
	y := 20.0
	var rows []float64
	for _, l := range t.Lanes {
		deepest := 0
		for _, s := range l.Spans {
			deepest = max(deepest, min(s.Depth, 7))
		}
		rows = append(rows, y)
		y += float64(deepest+1)*rowHeight + 14
	}
	fmt.Fprintf(w, `<svg width="%g" height="%g" font-size="11" font-family="sans-serif">`+"\n", pageWidth, y+30)
	for i, l := range t.Lanes {
		fmt.Fprintf(w, `<text x="0" y="%.1f">%s</text>`+"\n", rows[i]+12, html.EscapeString(l.Name))
		fmt.Fprintf(w, `<line x1="100" x2="%g" y1="%.1f" y2="%[2]g" stroke="#ccc"/>`+"\n", pageWidth-10, rows[i]+rowHeight)
		for j, s := range l.Spans {
			if j == maxBoxes {
				break
			}
			fmt.Fprintf(w, `<rect x="%.2f" y="%.1f" width="%.2f" height="%g" fill="%s"><title>%s, %.1f µs from %.1f</title></rect>`+"\n",
				x(s.From), rows[i]+float64(min(s.Depth, 7))*rowHeight, max(0.3, x(s.To)-x(s.From)), rowHeight-1, colour(s.Name),
				html.EscapeString(s.Name), s.To-s.From, s.From)
		}
		for j, m := range l.Marks {
			if j == maxBoxes {
				break
			}
			fmt.Fprintf(w, `<line x1="%.2f" x2="%[1]g" y1="%.1f" y2="%.1f" stroke="#000" stroke-width="0.3"/>`+"\n", x(m), rows[i]-5, rows[i])
		}
	}
	for _, s := range t.Steps {
		fmt.Fprintf(w, `<line x1="%.2f" x2="%[1]g" y1="8" y2="%.1f" stroke="#c03030" stroke-dasharray="3,3"/><text x="%.2f" y="10" fill="#c03030">%d</text>`+"\n",
			x(s.At), y, x(s.At)+2, s.Workers)
	}
	for i := 0; i <= 10; i++ {
		at := t.End * float64(i) / 10
		fmt.Fprintf(w, `<text x="%.1f" y="%.1f" fill="#666">%.3g ms</text>`+"\n", x(at)-12, y+16, at/1000)
	}
	fmt.Fprint(w, "</svg>\n")
}

func (t *Trace) table(w io.Writer) {
	fmt.Fprint(w, "<table><tr><th>worker</th>")
	for _, k := range kinds {
		fmt.Fprintf(w, "<th>%s</th>", k.name)
	}
	fmt.Fprint(w, "<th>looking for work</th><th>counts</th></tr>\n")
	for _, l := range t.Lanes {
		fmt.Fprintf(w, "<tr><td>%s</td>", html.EscapeString(l.Name))
		for _, k := range kinds {
			fmt.Fprintf(w, "<td>%s</td>", share(l.Totals[k.name], t.End))
		}
		fmt.Fprintf(w, "<td>%s</td><td>", share(l.Unknown, t.End))
		names := make([]string, 0, len(l.Counts))
		for n := range l.Counts {
			names = append(names, n)
		}
		sort.Strings(names)
		for i, n := range names {
			if i > 0 {
				fmt.Fprint(w, ", ")
			}
			fmt.Fprintf(w, "%d %s", l.Counts[n], html.EscapeString(n))
		}
		fmt.Fprint(w, "</td></tr>\n")
	}
	fmt.Fprint(w, "</table>\n")
}

func share(d, all float64) string {
	if d == 0 || all == 0 {
		return "—"
	}
	return fmt.Sprintf("%.1f %%", 100*d/all)
}
