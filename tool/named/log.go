package named

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// logMost is when a log begins anew; the one before is kept.
const logMost = 16 << 20

// Log is what a machine printed, in a file that does not grow without end.
type Log struct {
	name string
	mu   sync.Mutex
	f    *os.File // guarded by mu
	size int64    // guarded by mu
}

// OpenLog opens the machine's log for writing.
func (m *Machine) OpenLog() (*Log, error) {
	l := &Log{name: filepath.Join(m.Dir, logFile)}
	return l, l.open()
}

func (l *Log) open() (err error) {
	if l.f, err = os.OpenFile(l.name, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600); err == nil {
		l.size, err = l.f.Seek(0, io.SeekEnd)
	}
	return err
}

// Write never fails: a machine does not end because its log cannot be written.
func (l *Log) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.size+int64(len(b)) > logMost && l.size > 0 {
		l.f.Close()
		if os.Rename(l.name, l.name+".1") != nil || l.open() != nil {
			l.size = 0
		}
	}
	if _, err := l.f.Write(b); err == nil {
		l.size += int64(len(b))
	}
	return len(b), nil
}

// LastLine is the last line that a machine printed.
func (m *Machine) LastLine() string {
	f, err := os.Open(filepath.Join(m.Dir, logFile))
	if err != nil {
		return ""
	}
	defer f.Close()
	if st, err := f.Stat(); err == nil {
		_, _ = f.Seek(max(0, st.Size()-lineMost), io.SeekStart)
	}
	b, _ := io.ReadAll(io.LimitReader(f, lineMost))
	text := strings.TrimSpace(string(b))
	return text[strings.LastIndexByte(text, '\n')+1:]
}

// lineMost is the longest last line that is shown.
const lineMost = 1024

// CopyLog writes what a machine printed to w: the last lines of it, or all if lines is
// negative. With follow it goes on until the machine has ended or ctx is done.
func (m *Machine) CopyLog(ctx context.Context, w io.Writer, follow bool, lines int) error {
	name := filepath.Join(m.Dir, logFile)
	f, err := os.Open(name)
	if f != nil && lines >= 0 {
		if lines, err = skipTo(f, lines); err != nil {
			f.Close()
			return err
		}
	}
	if old, oerr := os.Open(name + ".1"); oerr == nil && lines != 0 {
		if lines > 0 {
			_, oerr = skipTo(old, lines)
		}
		if oerr == nil {
			_, oerr = io.Copy(w, old)
		}
		old.Close()
		if oerr != nil {
			if f != nil {
				f.Close()
			}
			return oerr
		}
	}
	for {
		if f != nil {
			if _, err := io.Copy(w, f); err != nil {
				f.Close()
				return err
			}
		}
		if f == nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if !follow || ctx.Err() != nil {
			break
		}
		alive := m.Alive()
		if next, nerr := os.Open(name); nerr == nil {
			if f == nil || !same(f, next) { // it began anew
				if f != nil {
					_, err = io.Copy(w, f)
					f.Close()
				}
				f = next
				continue
			}
			next.Close()
		}
		if !alive {
			if f != nil {
				_, err = io.Copy(w, f)
			}
			break
		}
		select {
		case <-ctx.Done():
		case <-time.After(50 * time.Millisecond):
		}
	}
	if f != nil {
		f.Close()
		return err
	}
	return nil
}

// skipTo goes to where the last lines of a file begin, and returns how many lines more than
// it has were wanted.
func skipTo(f *os.File, lines int) (missing int, err error) {
	at, err := f.Seek(0, io.SeekEnd)
	if err != nil || lines == 0 {
		return 0, err
	}
	buf := make([]byte, 32<<10)
	lines++ // the last line's own end is not counted
	for last := true; at > 0; last = false {
		n := min(at, int64(len(buf)))
		at -= n
		b := buf[:n]
		if _, err := f.ReadAt(b, at); err != nil {
			return 0, err
		}
		if last && b[n-1] != '\n' {
			lines--
		}
		for i := n - 1; i >= 0; i-- {
			if b[i] != '\n' {
				continue
			}
			if lines--; lines == 0 {
				_, err := f.Seek(at+i+1, io.SeekStart)
				return 0, err
			}
		}
	}
	_, err = f.Seek(0, io.SeekStart)
	return lines - 1, err
}

func same(a, b *os.File) bool {
	x, err1 := a.Stat()
	y, err2 := b.Stat()
	return err1 == nil && err2 == nil && os.SameFile(x, y)
}

// wordsFile has what the flight recorder of a kernel printed that panicked.
const wordsFile = "flight"

// KeepLastWords keeps that.
func (m *Machine) KeepLastWords(text []byte) error {
	return os.WriteFile(filepath.Join(m.Dir, wordsFile), text, 0o600)
}

// LastWords returns it.
func (m *Machine) LastWords() ([]byte, error) {
	f, err := os.OpenFile(filepath.Join(m.Dir, wordsFile), os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, stateMost))
}
