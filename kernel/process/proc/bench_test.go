package proc

import (
	"testing"

	"hardtack/kernel/fs/vfs"
	"hardtack/kernel/process/program"
)

func BenchmarkFork(b *testing.B) {
	asInit(func(c *Thread) {
		b.ReportAllocs()
		for b.Loop() {
			pid := c.spawn(b, fork, func(c *Thread) { c.ExitGroup(0) })
			c.waitFor(b, pid)
		}
	})
}

func BenchmarkExec(b *testing.B) {
	asInit(func(c *Thread) {
		t := &program.Args{Path: "/tiny", Walk: vfs.FollowLast, Argv: []string{"/tiny"}}
		c.put(b, "/tiny", 0o755, tinyELF())
		pid := c.spawn(b, fork, func(c *Thread) {
			b.ReportAllocs()
			for b.Loop() {
				if e := c.Exec(t); e != 0 {
					b.Error(e)
				}
			}
		})
		c.waitFor(b, pid)
	})
}
