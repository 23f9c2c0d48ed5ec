package netbench

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"time"

	osbench "hardtack/bench/os"
)

const portPprof = 6060

// Profile writes one of Hardtack's kernel for each row: the kernel samples by its clock,
// which counts instructions, so a share of samples is a share of instructions.
func (c *Config) Profile(dir string, seconds int) error {
	root, err := c.root()
	if err != nil {
		return err
	}
	c.pprof = portPprof
	return c.Watch(osbench.OnHardtack, root, func(count *counter) error {
		for _, r := range Rows {
			if len(c.Only) > 0 && !slices.Contains(c.Only, r.Name) {
				continue
			}
			c.Log("profiling %s", r.Name)
			data, err := count.p.profile(r, seconds)
			if err != nil {
				return fmt.Errorf("%s: %w", r.Name, err)
			}
			if err := os.WriteFile(filepath.Join(dir, r.Name+".pprof"), data, 0o644); err != nil {
				return err
			}
		}
		return nil
	})
}

// profile has the kernel watch itself while a row runs.
func (p *Peer) profile(r Row, seconds int) ([]byte, error) {
	turn, _, err := r.start(p)
	if err != nil {
		return nil, err
	}
	c, err := p.openOne(portPprof)
	if err != nil {
		return nil, err
	}
	defer c.Forget()
	c.Write(fmt.Appendf(nil, "GET /debug/pprof/profile?seconds=%d HTTP/1.0\r\n\r\n", seconds))
	for !c.Finished && len(c.Data) == 0 {
		if err := turn(); err != nil {
			return nil, err
		}
	}
	if err := p.Wait(time.Minute, func() bool { return c.Finished }); err != nil {
		return nil, err
	}
	c.Close()
	if err := p.Flush(); err != nil {
		return nil, err
	}
	head, body, ok := bytes.Cut(c.Data, []byte("\r\n\r\n"))
	if !ok || !bytes.Contains(head, []byte(fmt.Sprint(" ", http.StatusOK, " "))) {
		return nil, fmt.Errorf("the profile: %.100q", c.Data)
	}
	return body, nil
}
