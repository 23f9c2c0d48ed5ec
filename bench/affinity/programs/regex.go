package main

import (
	"bufio"
	"bytes"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"time"
)

// regex is the paper's second program: goroutines search their own sections of
// a log and report each match on one channel. The log is generated: the same
// size gives the same bytes. 535 MiB have 10.6 million lines.
func regex(f *flag.FlagSet) func() error {
	mib := f.Int("mib", 535, "size of the log in MiB")
	workers := f.Int("workers", 8, "goroutines that search")
	file := f.String("file", "", "keep the log in this `file` and use it again (default: a temporary one)")
	return func() error {
		if err := positive("mib", *mib, "workers", *workers); err != nil {
			return err
		}
		name := *file
		if name == "" {
			dir, err := os.MkdirTemp("", "regex-")
			if err != nil {
				return err
			}
			defer os.RemoveAll(dir)
			name = filepath.Join(dir, "log")
		}
		size := int64(*mib) << 20
		if fi, err := os.Stat(name); err != nil || fi.Size() != size {
			if err := writeLog(name, size); err != nil {
				return err
			}
		}
		start := time.Now()
		lines, matches, err := search(name, *workers)
		if err != nil {
			return err
		}
		seconds("search", time.Since(start))
		fmt.Fprintf(os.Stderr, "%d lines, %d matches\n", lines, matches)
		return nil
	}
}

// A web server's log, 53 bytes a line on average.
var (
	logVerbs = []string{"GET", "GET", "GET", "POST", "PUT", "HEAD"}
	logWords = []string{"index", "cart", "user", "img", "api", "v2", "login", "items", "a", "static"}
	logCodes = []string{"200", "200", "200", "304", "404", "500", "301"}
	// It matches one line in about five: failures below /api or /user with a number.
	logPattern = regexp.MustCompile(`^(\d{1,3}\.){3}\d{1,3} (GET|POST) (/[a-z0-9]+)*/(api|user)(/[a-z0-9]+)*/(\d+) [345]\d\d$`)
)

func writeLog(name string, size int64) (err error) {
	out, err := os.Create(name)
	if err != nil {
		return err
	}
	defer func() {
		if e := out.Close(); err == nil {
			err = e
		}
	}()
	w := bufio.NewWriterSize(out, 1<<20)
	r := rand.New(rand.NewPCG(535, 106))
	var line bytes.Buffer
	for left := size; left > 0; {
		line.Reset()
		fmt.Fprintf(&line, "%d.%d.%d.%d %s", r.IntN(256), r.IntN(256), r.IntN(256), r.IntN(256), logVerbs[r.IntN(len(logVerbs))])
		line.WriteByte(' ')
		for range 3 + r.IntN(4) {
			line.WriteByte('/')
			line.WriteString(logWords[r.IntN(len(logWords))])
		}
		fmt.Fprintf(&line, "/%d %s\n", r.IntN(10_000_000), logCodes[r.IntN(len(logCodes))])
		b := line.Bytes()
		if int64(len(b)) > left {
			b = append(bytes.Repeat([]byte{'-'}, int(left-1)), '\n')
		}
		if _, err := w.Write(b); err != nil {
			return err
		}
		left -= int64(len(b))
	}
	return w.Flush()
}

type match struct {
	offset int64
	length int
}

// search gives the lines of the file and how many of them match.
func search(name string, workers int) (lines, matches int, err error) {
	fi, err := os.Stat(name)
	if err != nil {
		return 0, 0, err
	}
	found := make(chan match, 16)
	type end struct {
		lines int
		err   error
	}
	ends := make(chan end, workers)
	for i := range int64(workers) {
		go func() {
			n, err := searchSection(name, fi.Size()*i/int64(workers), fi.Size()*(i+1)/int64(workers), found)
			ends <- end{n, err}
		}()
	}
	for left := workers; left > 0; {
		select {
		case <-found:
			matches++
		case e := <-ends:
			if left--; e.err != nil {
				err = e.err
			}
			lines += e.lines
		}
	}
	for len(found) > 0 {
		<-found
		matches++
	}
	runtime.KeepAlive(found)
	return lines, matches, err
}

// searchSection looks at the lines that begin in [from, to).
func searchSection(name string, from, to int64, found chan<- match) (lines int, err error) {
	f, err := os.Open(name)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	at := from
	if from > 0 {
		at-- // a line begins behind a newline; look at the byte before
	}
	r := bufio.NewReaderSize(io.NewSectionReader(f, at, 1<<62-at), 1<<18)
	if from > 0 {
		skipped, err := r.ReadSlice('\n')
		if err == io.EOF {
			return 0, nil
		} else if err != nil {
			return 0, err
		}
		at += int64(len(skipped))
	}
	for at < to {
		line, err := r.ReadSlice('\n')
		if err == io.EOF && len(line) == 0 {
			break
		} else if err != nil && err != io.EOF {
			return lines, err
		}
		lines++
		if logPattern.Match(bytes.TrimSuffix(line, []byte{'\n'})) {
			found <- match{at, len(line)}
		}
		at += int64(len(line))
	}
	return lines, nil
}
