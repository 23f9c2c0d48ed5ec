package idl

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

type tokenKind uint8

const (
	tokEOF    tokenKind = iota
	tokName             // a name or a key word
	tokNumber           // num has its value
	tokString           // text has what is between the quotes, unescaped
	tokPunct            // one of ; , ( ) [ ] { } @ =
)

type token struct {
	kind tokenKind
	pos  Pos
	text string
	num  uint64
	doc  string // the comment that ends on the line above or on this line
}

// String is the token as an error tells of it.
func (t token) String() string {
	switch t.kind {
	case tokEOF:
		return "the end of the file"
	case tokString:
		return "the text " + strconv.Quote(clip(t.text))
	case tokName, tokNumber:
		return strconv.Quote(clip(t.text))
	}
	return fmt.Sprintf("'%s'", t.text)
}

func clip(s string) string {
	if len(s) <= MaxName {
		return s
	}
	n := MaxName
	for !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}

// lexer cuts src, which is valid UTF-8, into tokens.
type lexer struct {
	src string
	off int
	pos Pos // of src[off]

	doc     strings.Builder // comments since the last token
	docLine int             // the line that the last of them ended on
}

// newLexer refuses what is no text at all.
func newLexer(file string, src []byte) (*lexer, error) {
	start := Pos{file, 1, 1}
	if len(src) > MaxFile {
		return nil, errorf(start, "the file has %d bytes; the limit is %d", len(src), MaxFile)
	}
	l := &lexer{src: string(src), pos: start}
	for i, r := range l.src {
		if r == utf8.RuneError {
			if _, n := utf8.DecodeRuneInString(l.src[i:]); n == 1 {
				l.advance(i)
				return nil, errorf(l.pos, "byte 0x%02x is not UTF-8", l.src[i])
			}
		}
	}
	l.src = strings.TrimPrefix(l.src, "\ufeff")
	return l, nil
}

// advance moves n bytes on.
func (l *lexer) advance(n int) {
	for _, r := range l.src[l.off : l.off+n] {
		if r == '\n' {
			l.pos.Line++
			l.pos.Col = 1
		} else {
			l.pos.Col++
		}
	}
	l.off += n
}

// span moves over the characters that ok accepts.
func (l *lexer) span(ok func(byte) bool) string {
	n := 0
	for l.off+n < len(l.src) && ok(l.src[l.off+n]) {
		n++
	}
	text := l.src[l.off : l.off+n]
	l.advance(n)
	return text
}

func isSpace(c byte) bool  { return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' }
func isLetter(c byte) bool { return c == '_' || 'a' <= c|0x20 && c|0x20 <= 'z' }
func isDigit(c byte) bool  { return '0' <= c && c <= '9' }
func isWord(c byte) bool   { return isLetter(c) || isDigit(c) }

func (l *lexer) next() (token, error) {
	l.doc.Reset()
	for {
		l.span(isSpace)
		rest := l.src[l.off:]
		switch {
		case strings.HasPrefix(rest, "//"):
			n := strings.IndexByte(rest, '\n')
			if n < 0 {
				n = len(rest)
			}
			l.comment(rest[2:n])
			l.advance(n)
			l.docLine = l.pos.Line
		case strings.HasPrefix(rest, "/*"):
			if err := l.block(); err != nil {
				return token{}, err
			}
		default:
			t, err := l.token()
			if l.doc.Len() > 0 && l.docLine+1 >= t.pos.Line {
				t.doc = strings.Trim(l.doc.String(), "\n")
			}
			return t, err
		}
	}
}

// comment keeps a comment's text; one that does not touch the last begins again.
func (l *lexer) comment(text string) {
	if l.pos.Line > l.docLine+1 {
		l.doc.Reset()
	}
	for _, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		line = strings.TrimSpace(strings.TrimLeft(line, "*"))
		l.doc.WriteString(line + "\n")
	}
}

// block reads a comment in /* */; they nest, as Flounder has it.
func (l *lexer) block() error {
	rest := l.src[l.off:]
	depth := 0
	for i := 0; i+1 < len(rest); {
		switch rest[i : i+2] {
		case "/*":
			depth++
			i += 2
		case "*/":
			depth--
			i += 2
		default:
			i++
		}
		if depth == 0 {
			l.comment(rest[2 : i-2])
			l.advance(i)
			l.docLine = l.pos.Line
			return nil
		}
	}
	return errorf(l.pos, "this comment has no end: expected */ before the end of the file")
}

func (l *lexer) token() (token, error) {
	t := token{pos: l.pos}
	if l.off == len(l.src) {
		return t, nil
	}
	c := l.src[l.off]
	switch {
	case isLetter(c):
		t.kind, t.text = tokName, l.span(isWord)
		if len(t.text) > MaxName {
			return t, errorf(t.pos, "the name %q has %d characters; the limit is %d", clip(t.text), len(t.text), MaxName)
		}
	case isDigit(c):
		t.kind, t.text = tokNumber, l.span(isWord)
		if len(t.text) > 1 && t.text[0] == '0' && isDigit(t.text[1]) {
			return t, errorf(t.pos, "the number %q begins with 0; expected 0x for hexadecimal, 0o for octal", clip(t.text))
		}
		n, err := strconv.ParseUint(t.text, 0, 64)
		if err != nil {
			return t, errorf(t.pos, "%q is no number below 2^64", clip(t.text))
		}
		t.num = n
	case c == '"':
		return t, l.quoted(&t)
	case strings.IndexByte(";,()[]{}@=", c) >= 0:
		t.kind, t.text = tokPunct, string(c)
		l.advance(1)
	default:
		r, _ := utf8.DecodeRuneInString(l.src[l.off:])
		return t, errorf(t.pos, "the character %q has no meaning here", r)
	}
	return t, nil
}

// quoted reads a text in quotes.
func (l *lexer) quoted(t *token) error {
	t.kind = tokString
	var b strings.Builder
	rest := l.src[l.off:]
	for i := 1; i < len(rest); i++ {
		switch c := rest[i]; c {
		case '"':
			t.text = b.String()
			l.advance(i + 1)
			return nil
		case '\n':
			return errorf(t.pos, `this text has no end: expected " on the same line`)
		case '\\':
			i++
			if i == len(rest) {
				break
			}
			if rest[i] == '\n' {
				return errorf(t.pos, `this text has no end: expected " on the same line`)
			}
			j := strings.IndexByte(`"\nt`, rest[i])
			if j < 0 {
				l.advance(i - 1)
				r, _ := utf8.DecodeRuneInString(l.src[l.off+1:])
				if !unicode.IsPrint(r) {
					return errorf(l.pos, `unknown escape: a backslash and %U; expected \", \\, \n or \t`, r)
				}
				return errorf(l.pos, `unknown escape \%c; expected \", \\, \n or \t`, r)
			}
			b.WriteByte("\"\\\n\t"[j])
		default:
			b.WriteByte(c)
		}
	}
	return errorf(t.pos, `this text has no end: expected " before the end of the file`)
}
