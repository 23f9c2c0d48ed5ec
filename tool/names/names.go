// Package names implements `hardtack names`: it runs the name service and shows its
// contents.
package names

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/user"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"hardtack/msg/names"
	"hardtack/tool/fault"
)

// Serve runs the service until ctx is done.
func Serve(ctx context.Context, out io.Writer, path string) error {
	start, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	s, err := names.Listen(start, path)
	if err != nil {
		return fault.Bad("%v", err)
	}
	defer s.Close()
	fmt.Fprintln(out, "serving names at", s.Addr())
	if err := s.Wait(ctx); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// open connects to the running service; looking must not start one.
func open(ctx context.Context, path string) (*names.Client, error) {
	c, err := names.Open(ctx, names.Options{Path: path, NoEmbed: true})
	if errors.Is(err, names.ErrNoServer) {
		return nil, fault.Bad("%v; programs on typed channels start one, as does `hardtack names serve`", err)
	}
	return c, err
}

// List prints the entries under a prefix.
func List(ctx context.Context, out io.Writer, path, prefix string) error {
	c, err := open(ctx, path)
	if err != nil {
		return err
	}
	defer c.Close()
	entries, err := c.List(ctx, prefix)
	if err != nil {
		return asFault(err)
	}
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "NAME\tUSER\tPID\tVALUE")
	for _, e := range entries {
		fmt.Fprintf(w, "%s\t%s\t%d\t%s\n", e.Name, userName(e.UID), e.PID, value(e.Value))
	}
	return w.Flush()
}

// Get prints one entry's value, waiting for it if asked to.
func Get(ctx context.Context, out io.Writer, path, name string, wait bool) error {
	c, err := open(ctx, path)
	if err != nil {
		return err
	}
	defer c.Close()
	ask := c.Get
	if wait {
		ask = c.WaitFor
	}
	e, err := ask(ctx, name)
	if err != nil {
		return asFault(err)
	}
	_, err = fmt.Fprintln(out, strings.TrimSuffix(printable(string(e.Value)), "\n"))
	return err
}

// Watch prints what happens under a prefix until ctx is done.
func Watch(ctx context.Context, out io.Writer, path, prefix string) error {
	c, err := open(ctx, path)
	if err != nil {
		return err
	}
	defer c.Close()
	w, err := c.Watch(ctx, prefix)
	if err != nil {
		return asFault(err)
	}
	defer w.Close()
	for {
		ev, err := w.Next(ctx)
		if errors.Is(err, context.Canceled) {
			return nil
		} else if err != nil {
			return err
		}
		e := ev.Entry
		switch ev.Kind {
		case names.Synced:
			_, err = fmt.Fprintln(out, "# the above exist")
		case names.Gone:
			_, err = fmt.Fprintf(out, "- %s\n", e.Name)
		default:
			_, err = fmt.Fprintf(out, "+ %s user=%s pid=%d %s\n", e.Name, userName(e.UID), e.PID, value(e.Value))
		}
		if err != nil {
			return err
		}
	}
}

func asFault(err error) error {
	if errors.Is(err, names.ErrNotFound) || errors.Is(err, names.ErrInvalid) {
		return fault.Bad("%v", err)
	}
	return err
}

// value shows an endpoint as interface and addresses, and anything else quoted.
func value(v []byte) string {
	if e, err := names.ParseEndpoint(v); err == nil {
		return printable(e.Interface + " at " + strings.Join(e.Addrs, " "))
	}
	return strconv.Quote(string(v))
}

// printable keeps what programs wrote from steering a terminal.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && !strconv.IsPrint(r) {
			return '?'
		}
		return r
	}, s)
}

func userName(uid uint32) string {
	id := strconv.FormatUint(uint64(uid), 10)
	if u, err := user.LookupId(id); err == nil {
		return u.Username
	}
	return id
}
