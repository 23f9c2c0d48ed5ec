// Package watch shows what a machine does: as Prometheus reads it, as a page with pictures
// that live, as samples for a terminal, and as the flight recorder's file for Perfetto.
//
// # Trust
//
// All of it comes from the guest's kernel, and some texts from its programs. Numbers pass as
// numbers; names pass as texts that are bounded, and nothing that shows them takes them for
// markup. Who asks gets to read and nothing else. What is served is for who reaches the
// address, which is this host unless somebody says otherwise; a page of another site that is
// shown in a browser of this host does not (see guard).
package watch

import (
	"bytes"
	"context"
	"strings"

	"hardtack/idl/live"
)

// Source is a machine that runs.
type Source struct {
	Name string
	// Live is its kernel.
	Live func(ctx context.Context) (*live.Client, error)
	// Host tells the emulator's time on processors in nanoseconds, and its memory in bytes.
	Host func(ctx context.Context) (processor, resident uint64, err error)
}

// kernelFiles is where the kernel tells of itself.
const kernelFiles = "/proc/hardtack/"

// processNet is the network as process 1 sees it: the kernel, which reads the files, is no
// process and so has no /proc/self.
const processNet = "/proc/1/net/"

// reader reads the guest's files.
type reader struct {
	ctx context.Context
	c   *live.Client // nil: the kernel does not answer
}

func (s *Source) reader(ctx context.Context) *reader {
	c, err := s.Live(ctx)
	if err != nil {
		c = nil
	}
	return &reader{ctx, c}
}

// health is how the machine is; answers is 1 if its kernel said it.
func (r *reader) health() (h live.HealthReply, answers float64) {
	if r.c == nil {
		return h, 0
	}
	h, err := r.c.Health(r.ctx, live.HealthCall{})
	if err != nil {
		r.c = nil
		return h, 0
	}
	return h, 1
}

// proceedMost bounds what is read of one of the guest's files.
const proceedMost = 1 << 20

// text is a file of the guest's. It is made anew for each piece that is read, so pieces begin
// at a line.
func (r *reader) text(path string) string {
	var b strings.Builder
	for r.c != nil && b.Len() < proceedMost {
		out, err := r.c.Read(r.ctx, live.ReadCall{At: uint64(b.Len()), Path: path})
		end := bytes.LastIndexByte(out.Data, '\n') + 1
		if err != nil || out.Errno != 0 || end == 0 {
			break // an old kernel does not have the file
		}
		b.Write(out.Data[:end])
	}
	return b.String()
}

// fields are the words of each line of a file.
func (r *reader) fields(path string) (lines [][]string) {
	for line := range strings.Lines(r.text(path)) {
		lines = append(lines, strings.Fields(line))
	}
	return lines
}
