package main

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	osbench "hardtack/bench/os"
)

// lookedAt are the calls that are counted beside a trace.
var lookedAt = []struct{ name, text string }{
	{"getpid", "getpid"}, {"read", "read 4 KiB"}, {"write", "write 4 KiB"}, {"open", "open and close"},
}

// looking counts instructions of calls while another process is traced, and while none is.
func (b *bench) looking(int) error {
	root, names := osbench.Tree{}, ""
	for _, r := range lookedAt {
		names += " " + r.name
	}
	if err := b.compile(root, "watched"); err != nil {
		return err
	}
	programs, err := osbench.Programs(b.Dirs, "/bench/osbench -t"+names+"\n/bench/watched /bench/osbench -t"+names+"\n")
	if err != nil {
		return err
	}
	root.Merge(programs)
	b.Log("looking: a trace of another process")
	boot := osbench.Boot{OS: osbench.OnHardtack, Root: root, CPUs: 1, Memory: "256M", Machine: "microvm", ICount: true, Timeout: 10 * time.Minute}
	m, err := boot.Start(b.Dirs, b.Linux)
	if err != nil {
		return err
	}
	results, err := m.Wait()
	if err != nil {
		return err
	}
	for _, want := range lookedAt {
		got := 0
		for _, r := range results {
			if r.Name == want.name {
				b.add(want.name, r.Median) // without a trace, and then with one
				got++
			}
		}
		if got != 2 {
			return fmt.Errorf("%s was counted %d times:\n%s", want.name, got, m.Output())
		}
	}
	return nil
}

// lookingTable is the page's part about that.
func (b *bench) lookingTable(p *bytes.Buffer) {
	p.WriteString("\n| | without | beside a trace |\n| --- | ---: | ---: |\n")
	for _, r := range lookedAt {
		cells := []string{"—", "—"}
		for i, v := range b.rows["looking "+r.name] {
			cells[i%2] = fmt.Sprintf("%.0f", v)
		}
		fmt.Fprintf(p, "| %s | %s |\n", r.text, strings.Join(cells, " | "))
	}
}
