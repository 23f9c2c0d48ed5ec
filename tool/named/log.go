package named

import (
	"bytes"
	"encoding/binary"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// logMost is when a log begins anew; the one before is kept.
const logMost = 16 << 20

// Log is what a machine printed, in a file that does not grow without end, and when: a second
// file has records of where a line begins and the time. Lines up to the next record are as old.
type Log struct {
	name  string
	mu    sync.Mutex
	f     *os.File  // guarded by mu
	times *os.File  // guarded by mu
	size  int64     // guarded by mu
	inner bool      // the last byte was not the end of a line; guarded by mu
	noted time.Time // of the last record, zero in a new file; guarded by mu
}

const (
	timesSuffix = ".times"
	recordSize  = 16 // the place and the time in nanoseconds since 1970, the lowest bytes first
	// timesApart is how far records are apart at least: a machine that prints much does not
	// make a long file of them.
	timesApart = time.Millisecond
)

// OpenLog opens the machine's log for writing.
func (m *Machine) OpenLog() (*Log, error) {
	l := &Log{name: filepath.Join(m.Dir, logFile)}
	return l, l.open()
}

func (l *Log) open() (err error) {
	const flags = os.O_WRONLY | os.O_CREATE | os.O_APPEND
	if l.times, err = os.OpenFile(l.name+timesSuffix, flags, 0o600); err != nil {
		return err
	}
	if l.f, err = os.OpenFile(l.name, flags, 0o600); err == nil {
		l.size, err = l.f.Seek(0, io.SeekEnd)
	}
	l.noted = time.Time{}
	return err
}

// Write never fails: a machine does not end because its log cannot be written.
func (l *Log) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.size+int64(len(b)) > logMost && l.size > 0 {
		l.f.Close()
		l.times.Close()
		// Who opens the old file between the two renames has the times of other lines.
		if os.Rename(l.name, l.name+".1") != nil || os.Rename(l.name+timesSuffix, l.name+".1"+timesSuffix) != nil || l.open() != nil {
			l.size = 0
		}
	}
	l.note(b)
	if _, err := l.f.Write(b); err == nil {
		l.size += int64(len(b))
	}
	return len(b), nil
}

// note writes a record if a line begins in what is about to be written.
func (l *Log) note(b []byte) {
	begins := 0
	if l.inner && l.size > 0 {
		begins = bytes.IndexByte(b, '\n') + 1
	}
	if len(b) == 0 || l.inner && l.size > 0 && begins == 0 {
		return
	}
	l.inner = b[len(b)-1] != '\n'
	now := time.Now()
	if begins == len(b) || !l.noted.IsZero() && now.Sub(l.noted) < timesApart {
		return
	}
	l.noted = now
	r := binary.LittleEndian.AppendUint64(nil, uint64(l.size)+uint64(begins))
	_, _ = l.times.Write(binary.LittleEndian.AppendUint64(r, uint64(now.UnixNano()))) // as for the log
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
