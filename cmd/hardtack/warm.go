package main

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"hardtack/tool/fault"
	"hardtack/tool/named"
)

func newImageWarm() *cobra.Command {
	var out, when string
	var limit time.Duration
	cmd := &cobra.Command{
		Use:   "warm -o SNAPSHOT [flags] -- RUN-ARG...",
		Short: "Make a snapshot of an image that has started",
		Long: `Run an image until it has started, save it, and end it. "hardtack run --from" and "hardtack
fork" then start it in a fraction of a second. The arguments are those of "hardtack run", which
come behind --: flags, the image, and -- with a command.

The machine is saved when its process 1 runs, or with --when as soon as it has printed a text.`,
		Example: `  hardtack image warm -o redis.snap --when "Ready to accept" -- redis:7
  hardtack run --from redis.snap -p 6379:6379`,
		Args: atLeast(1, "what hardtack run takes"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if out == "" {
				return fault.Bad("want -o SNAPSHOT; see %s --help", cmd.CommandPath())
			}
			name, err := launched(append([]string{"run", "-d", "--name", named.NewName()}, args...))
			if err != nil {
				return err
			}
			m, err := named.Find(name)
			if err != nil {
				return err
			}
			defer func() {
				_ = m.End(context.WithoutCancel(cmd.Context())) // it may have ended by itself
				_ = m.Remove()
			}()
			if when != "" {
				if err := awaitText(cmd.Context(), m, when, limit); err != nil {
					return err
				}
			}
			if _, err := save(cmd.Context(), m, out); err != nil {
				return err
			}
			_, err = fmt.Println(out)
			return err
		},
	}
	cmd.Flags().StringVarP(&out, "output", "o", "", "the new `folder`")
	cmd.Flags().StringVar(&when, "when", "", "save it when it has printed this `text`")
	cmd.Flags().DurationVar(&limit, "timeout", 5*time.Minute, "how long to wait for the text")
	return cmd
}

// awaitText waits until a machine has printed a text.
func awaitText(ctx context.Context, m *named.Machine, text string, limit time.Duration) error {
	waiting, found := context.WithTimeout(ctx, limit)
	defer found()
	w := &finder{text: []byte(text), found: found}
	err := m.CopyLog(waiting, w, named.LogView{Lines: -1, Follow: true})
	switch {
	case w.done:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case waiting.Err() != nil:
		return fault.With(fault.Host, "it has not printed %q in %v; its last line: %s", text, limit, m.LastLine())
	case err != nil:
		return err
	}
	return fault.With(fault.Host, "it has ended, and never printed %q; its last line: %s", text, m.LastLine())
}

// finder looks for a text in what is written to it.
type finder struct {
	text, tail []byte
	found      func()
	done       bool
}

func (f *finder) Write(p []byte) (int, error) {
	f.tail = append(f.tail, p...)
	if !f.done && bytes.Contains(f.tail, f.text) {
		f.done = true
		f.found()
	}
	f.tail = append(f.tail[:0], f.tail[max(len(f.tail)-len(f.text), 0):]...)
	return len(p), nil
}
