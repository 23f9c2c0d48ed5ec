package machine

import "bytes"

// lastWords takes what the flight recorder of a kernel that panics prints (cmd/kernel, record)
// out of the console's output. A program that prints the same hides some of its own output
// until the machine's end, and no more: only after a panic is it taken for the recorder's.
type lastWords struct {
	held  []byte // the beginning of what may be the first mark
	words []byte
	begun bool
	ended bool
}

var (
	wordsBegin = []byte("<flight recorder>\r\n")
	wordsEnd   = []byte("</flight recorder>\r\n")
)

// wordsMost bounds them.
const wordsMost = 256 << 10

// filter returns what is not the recorder's. A nil lastWords takes nothing out.
func (l *lastWords) filter(b []byte) []byte {
	if l == nil || l.ended {
		return b
	}
	b = append(l.held, b...)
	l.held = nil
	if !l.begun {
		before, after, ok := bytes.Cut(b, wordsBegin)
		if !ok {
			n := partial(b, wordsBegin)
			l.held = bytes.Clone(b[len(b)-n:])
			return b[:len(b)-n]
		}
		l.begun = true
		return append(bytes.Clone(before), l.take(after)...)
	}
	return l.take(b)
}

// take keeps the recorder's words, and returns what comes after them.
func (l *lastWords) take(b []byte) []byte {
	l.words = append(l.words, b...)
	if before, after, ok := bytes.Cut(l.words, wordsEnd); ok {
		l.ended = true
		after = bytes.Clone(after)
		l.words = before
		return after
	}
	if len(l.words) > wordsMost { // it is no recorder's
		b, l.words, l.ended = l.words, nil, true
		return b
	}
	return nil
}

// rest is what was held back and is no recorder's after all.
func (l *lastWords) rest() []byte {
	if l == nil {
		return nil
	}
	b := l.held
	l.held = nil
	if l.begun && !l.ended {
		b = l.words
		l.words = nil
	}
	return b
}

// text is what the recorder printed; nil if it did not.
func (l *lastWords) text() []byte {
	if l == nil || !l.ended || l.words == nil {
		return nil
	}
	return l.words
}

// partial is how many bytes at the end of b may be the beginning of mark.
func partial(b, mark []byte) int {
	for n := min(len(b), len(mark)-1); n > 0; n-- {
		if bytes.HasPrefix(mark, b[len(b)-n:]) {
			return n
		}
	}
	return 0
}
