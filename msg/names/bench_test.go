package names

import (
	"context"
	"os"
	"testing"
)

// A look-up by a process that is connected, beside the least that a question to
// another process costs here: a byte there and back over a pair of pipes.
func BenchmarkGet(b *testing.B) {
	ctx := context.Background()
	path := b.TempDir() + "/names"
	c, err := Open(ctx, Options{Path: path})
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Set(ctx, "name", make([]byte, 100), 0); err != nil {
		b.Fatal(err)
	}
	b.Run("get", func(b *testing.B) {
		for b.Loop() {
			if _, err := c.Get(ctx, "name"); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("pipes", func(b *testing.B) {
		r1, w1, _ := os.Pipe()
		r2, w2, _ := os.Pipe()
		defer w1.Close()
		defer r2.Close()
		go func() {
			buf := make([]byte, 1)
			for {
				if _, err := r1.Read(buf); err != nil {
					w2.Close()
					return
				}
				w2.Write(buf)
			}
		}()
		buf := make([]byte, 1)
		for b.Loop() {
			w1.Write(buf)
			if _, err := r2.Read(buf); err != nil {
				b.Fatal(err)
			}
		}
	})
}
