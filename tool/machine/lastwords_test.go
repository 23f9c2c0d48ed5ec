package machine

import (
	"strings"
	"testing"
)

// What the recorder prints is taken out of the console's text, however that is cut.
func TestLastWords(t *testing.T) {
	const before, words, after = "panic: x\r\n<flight", "now 1 2\r\nr 0 1 2 3\r\n", "the end\r\n"
	whole := before + string(wordsBegin) + words + string(wordsEnd) + after
	for step := 1; step <= len(whole); step++ {
		l := new(lastWords)
		var out strings.Builder
		for rest := whole; rest != ""; {
			n := min(step, len(rest))
			out.Write(l.filter([]byte(rest[:n])))
			rest = rest[n:]
		}
		out.Write(l.rest())
		if out.String() != before+after || string(l.text()) != words {
			t.Fatalf("in pieces of %d: the console has %q, the recorder %q", step, out.String(), l.text())
		}
	}
}

// A program that prints the mark loses nothing.
func TestLastWordsOfNobody(t *testing.T) {
	for _, text := range []string{"<flight recorder>\r\nabc", "<flight rec", "<flight recorder>\r\n" + strings.Repeat("x", wordsMost+1) + "y"} {
		l := new(lastWords)
		out := string(l.filter([]byte(text[:5]))) + string(l.filter([]byte(text[5:]))) + string(l.rest())
		if want := strings.TrimPrefix(text, "<flight recorder>\r\n"); out != want || l.text() != nil {
			t.Errorf("of %.30q the console has %.30q (%d bytes)", text, out, len(out))
		}
	}
}
