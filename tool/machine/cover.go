package machine

import (
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// counts is what a kernel built with --cover sends before it powers off: the two files
// that a program built with "go build -cover" leaves in $GOCOVERDIR.
type counts struct {
	dir            string // where the files go; "" nowhere
	meta, counters []byte
	err            error // why they did not get there
}

// countsMax bounds what a guest may send.
const countsMax = 64 << 20

// The hash by which the two files are joined stands in the header of the first.
const (
	hashStart = 24
	hashEnd   = 40
)

func (c *counts) hear(text string) {
	if c.dir == "" {
		return
	}
	kind, data, _ := strings.Cut(text, " ")
	b, err := base64.StdEncoding.DecodeString(data)
	if err != nil || len(c.meta)+len(c.counters)+len(b) > countsMax {
		return
	}
	switch kind {
	case "meta":
		c.meta = append(c.meta, b...)
	case "counters":
		c.counters = append(c.counters, b...)
	case "end":
		c.err = c.save()
		c.meta, c.counters = nil, nil
	}
}

// save writes the files with the names that Go's tools expect.
func (c *counts) save() error {
	if len(c.meta) < hashEnd {
		return errors.New("the guest's coverage has no header")
	}
	hash := fmt.Sprintf("%x", c.meta[hashStart:hashEnd])
	unique := fmt.Sprintf("%d.%d", os.Getpid(), time.Now().UnixNano())
	tmp := filepath.Join(c.dir, "tmp."+unique)
	if err := os.WriteFile(tmp, c.meta, 0o644); err != nil {
		return err
	}
	if err := os.Rename(tmp, filepath.Join(c.dir, "covmeta."+hash)); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(c.dir, "covcounters."+hash+"."+unique), c.counters, 0o644)
}
