package named

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"time"
)

// LogView says what of a log is wanted.
type LogView struct {
	Lines        int       // the last ones; all if it is negative
	Follow       bool      // go on until the machine has ended
	Since, Until time.Time // of the last lines only those of this time; zero is no bound
	Timestamps   bool      // before each line
}

// plain reports whether lines need not be told from each other.
func (v *LogView) plain() bool { return v.Since.IsZero() && v.Until.IsZero() && !v.Timestamps }

// timestamp is how docker writes the time before a line.
const timestamp = "2006-01-02T15:04:05.000000000Z07:00 "

// logPart is one of the files of a log.
type logPart struct {
	f, times *os.File // times is nil if there is none
	at       int64    // what has been read
	time     time.Time
	next     int64 // up to where that is the time of lines
}

// openPart opens a file of the log with its times: while it is looked at, the log may begin
// anew.
func openPart(name string) (*logPart, error) {
	for {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		p := &logPart{f: f, next: -1}
		if p.times, err = os.Open(name + timesSuffix); err != nil {
			p.times = nil
		}
		if now, err := os.Open(name); err == nil {
			still := same(f, now)
			now.Close()
			if still {
				return p, nil
			}
		}
		p.close()
	}
}

func (p *logPart) close() {
	if p == nil {
		return
	}
	p.f.Close()
	if p.times != nil {
		p.times.Close()
	}
}

// since is the time of the line that begins at a place.
func (p *logPart) since(at int64) time.Time {
	if at < p.next || p.times == nil {
		return p.time
	}
	st, err := p.times.Stat()
	if err != nil {
		return p.time
	}
	record := func(i int) (place int64, when time.Time) {
		var b [recordSize]byte
		if _, err := p.times.ReadAt(b[:], int64(i)*recordSize); err != nil {
			return 0, time.Time{}
		}
		return int64(binary.LittleEndian.Uint64(b[:])), time.Unix(0, int64(binary.LittleEndian.Uint64(b[8:])))
	}
	count := int(st.Size() / recordSize)
	i := sort.Search(count, func(i int) bool { place, _ := record(i); return place > at })
	if i > 0 {
		_, p.time = record(i - 1)
	}
	if p.next = at + 1; i < count {
		p.next, _ = record(i)
	}
	return p.time
}

// logWriter writes what is wanted of a log.
type logWriter struct {
	*LogView
	w     io.Writer
	inner bool // the last byte was not the end of a line
	drop  bool // and the line is not wanted
	buf   []byte
}

// errPast says that lines are too young now.
var errPast = errors.New("the log goes on after the time that was asked for")

// copy writes what a file of the log has by now.
func (w *logWriter) copy(p *logPart) error {
	for {
		n, err := p.f.ReadAt(w.buf, p.at)
		b := w.buf[:n]
		if w.plain() {
			if _, err := w.w.Write(b); err != nil {
				return err
			}
			p.at += int64(n)
			b = nil
		}
		for len(b) > 0 {
			line := b
			if end := bytes.IndexByte(b, '\n'); end >= 0 {
				line = b[:end+1]
			}
			if err := w.piece(p, line); err != nil {
				return err
			}
			p.at += int64(len(line))
			b = b[len(line):]
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// piece writes a line or a part of one.
func (w *logWriter) piece(p *logPart, b []byte) error {
	if !w.inner {
		t := p.since(p.at)
		if !w.Until.IsZero() && t.After(w.Until) {
			return errPast
		}
		if w.drop = t.Before(w.Since); !w.drop && w.Timestamps {
			if _, err := io.WriteString(w.w, t.UTC().Format(timestamp)); err != nil {
				return err
			}
		}
	}
	w.inner = b[len(b)-1] != '\n'
	if w.drop {
		return nil
	}
	_, err := w.w.Write(b)
	return err
}

// CopyLog writes what a machine printed to w, until its end or ctx is done if the view follows.
func (m *Machine) CopyLog(ctx context.Context, out io.Writer, v LogView) error {
	err := m.copyLog(ctx, &logWriter{LogView: &v, w: out, buf: make([]byte, 64<<10)})
	if errors.Is(err, errPast) {
		return nil
	}
	return err
}

func (m *Machine) copyLog(ctx context.Context, w *logWriter) error {
	name := filepath.Join(m.Dir, logFile)
	p, err := openPart(name)
	defer func() { p.close() }()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	lines := w.Lines
	if p != nil && lines >= 0 {
		if p.at, lines, err = skipTo(p.f, lines); err != nil {
			return err
		}
	}
	if lines != 0 {
		if err := w.older(name+".1", lines); err != nil {
			return err
		}
	}
	for {
		if p != nil {
			if err := w.copy(p); err != nil {
				return err
			}
		}
		if !w.Follow || ctx.Err() != nil || !w.Until.IsZero() && time.Now().After(w.Until) {
			return nil
		}
		alive := m.Alive()
		if next, err := openPart(name); err == nil {
			if p == nil || !same(p.f, next.f) { // it began anew
				old := p
				if p = next; old != nil {
					err = w.copy(old)
					old.close()
				}
				if err != nil {
					return err
				}
				continue
			}
			next.close()
		}
		if !alive {
			if p != nil {
				return w.copy(p)
			}
			return nil
		}
		select {
		case <-ctx.Done():
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// older writes what is wanted of the file before the last one, if there is one.
func (w *logWriter) older(name string, lines int) error {
	p, err := openPart(name)
	if err != nil {
		return nil // none
	}
	defer p.close()
	if lines > 0 {
		if p.at, _, err = skipTo(p.f, lines); err != nil {
			return err
		}
	}
	return w.copy(p)
}

// skipTo finds where the last lines of a file begin, and how many lines more than it has were
// wanted.
func skipTo(f *os.File, lines int) (at int64, missing int, err error) {
	at, err = f.Seek(0, io.SeekEnd)
	if err != nil || lines == 0 {
		return at, 0, err
	}
	buf := make([]byte, 32<<10)
	lines++ // the last line's own end is not counted
	for last := true; at > 0; last = false {
		n := min(at, int64(len(buf)))
		at -= n
		b := buf[:n]
		if _, err := f.ReadAt(b, at); err != nil {
			return 0, 0, err
		}
		if last && b[n-1] != '\n' {
			lines--
		}
		for i := n - 1; i >= 0; i-- {
			if b[i] != '\n' {
				continue
			}
			if lines--; lines == 0 {
				return at + i + 1, 0, nil
			}
		}
	}
	return 0, lines - 1, nil
}

func same(a, b *os.File) bool {
	x, err1 := a.Stat()
	y, err2 := b.Stat()
	return err1 == nil && err2 == nil && os.SameFile(x, y)
}
