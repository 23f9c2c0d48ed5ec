package cluster

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// move is a request to move processors or memory.
type move struct {
	what, much string
	from, to   uint
}

// parseMove reads what follows the command's name: how much, and the flags, in any order.
func parseMove(args []string) (m move, ok bool) {
	f := flag.NewFlagSet("", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	from, to := f.Uint("from", 0, ""), f.Uint("to", 0, "")
	m.what = args[0]
	for args = args[1:]; len(args) > 0; args = f.Args() {
		if !strings.HasPrefix(args[0], "-") {
			if m.much != "" {
				return m, false
			}
			m.much, args = args[0], args[1:]
		}
		if f.Parse(args) != nil {
			return m, false
		}
	}
	named := 0
	f.Visit(func(*flag.Flag) { named++ })
	m.from, m.to = *from, *to
	return m, m.much != "" && named == 2
}

const moves = "/proc/hardtack/moves"

// ask has the kernel move, and says what kept it from that.
func (m move) ask() int {
	if m.what == "cores" {
		if _, err := strconv.ParseUint(m.much, 10, 16); err != nil {
			return report(fmt.Errorf("%q is no number of processors", m.much))
		}
	}
	text := fmt.Sprintf("%s %s %d %d", m.what, m.much, m.from, m.to)
	err := os.WriteFile(control, []byte(text), 0)
	switch {
	case errors.Is(err, syscall.ENOENT):
		err = errors.New("only cluster 0 of a machine with several moves anything")
	case errors.Is(err, syscall.EINVAL) && m.what == "memory" && m.from != m.to:
		err = fmt.Errorf("there are no such clusters, or %q is no size in whole pieces of 2M", m.much)
	case err != nil:
		b, _ := os.ReadFile(moves)
		if why := LastMove(b, text); why != "" {
			err = errors.New(why)
		}
	}
	return report(err)
}

// LastMove is how the last such request went, with what was done of it, as the kernel's list of moves says.
func LastMove(moves []byte, text string) (how string) {
	for line := range strings.Lines(string(moves)) {
		rest, ok := strings.CutPrefix(line, text+" moved ")
		if !ok {
			continue
		}
		moved, _, _ := strings.Cut(rest, " ")
		_, how, _ = strings.Cut(strings.TrimSpace(rest), ": ")
		if moved != "0" {
			how += fmt.Sprintf(" (%s moved)", moved)
		}
	}
	return how
}
