package machine

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// monitor is QEMU's own control channel (QMP): JSON, an object a line. It is QEMU's, not
// the guest's.
type monitor struct {
	mu    sync.Mutex // one command at a time
	conn  *net.UnixConn
	in    *bufio.Reader
	ready bool // it has greeted
}

// newMonitor takes over the host's end of the channel.
func newMonitor(f *os.File) (*monitor, error) {
	c, err := net.FileConn(f)
	f.Close()
	if err != nil {
		return nil, err
	}
	u, ok := c.(*net.UnixConn)
	if !ok {
		c.Close()
		return nil, errors.New("the monitor is no Unix socket")
	}
	return &monitor{conn: u, in: bufio.NewReader(u)}, nil
}

// answer is a line of QEMU's.
type answer struct {
	Return json.RawMessage `json:"return"`
	Event  string          `json:"event"`
	Error  *struct {
		Desc string `json:"desc"`
	} `json:"error"`
}

// do carries out a command, with a file that it speaks of, and fills out with the answer.
func (m *monitor) do(command string, arguments any, file *os.File, out any) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.ready {
		if _, err := m.in.ReadBytes('\n'); err != nil { // who it is
			return fmt.Errorf("QEMU's monitor: %w", err)
		}
		if err := m.call("qmp_capabilities", nil, nil, nil); err != nil {
			return err
		}
		m.ready = true
	}
	return m.call(command, arguments, file, out)
}

// call is do; called with mu held.
func (m *monitor) call(command string, arguments any, file *os.File, out any) error {
	line, err := json.Marshal(struct {
		Execute   string `json:"execute"`
		Arguments any    `json:"arguments,omitempty"`
	}{command, arguments})
	if err != nil {
		return err
	}
	var rights []byte
	if file != nil {
		rights = unix.UnixRights(int(file.Fd()))
	}
	if _, _, err := m.conn.WriteMsgUnix(append(line, '\n'), rights, nil); err != nil {
		return fmt.Errorf("QEMU's monitor: %w", err)
	}
	for {
		line, err := m.in.ReadBytes('\n')
		if err != nil {
			return fmt.Errorf("QEMU's monitor: %w", err)
		}
		var a answer
		if err := json.Unmarshal(line, &a); err != nil {
			return fmt.Errorf("QEMU's monitor: %w", err)
		}
		switch {
		case a.Event != "":
			continue
		case a.Error != nil:
			return fmt.Errorf("QEMU: %s: %s", command, a.Error.Desc)
		case out != nil:
			return json.Unmarshal(a.Return, out)
		}
		return nil
	}
}

// ignoreShared has migrations leave out memory that is a shared file.
func (m *monitor) ignoreShared() error {
	type capability struct {
		Capability string `json:"capability"`
		State      bool   `json:"state"`
	}
	return m.do("migrate-set-capabilities", map[string]any{"capabilities": []capability{{"x-ignore-shared", true}}}, nil, nil)
}

// migrated reports whether a migration is over.
func (m *monitor) migrated() (bool, error) {
	var s struct {
		Status string `json:"status"`
		Desc   string `json:"error-desc"`
	}
	if err := m.do("query-migrate", nil, nil, &s); err != nil {
		return false, err
	}
	if s.Status == "failed" || s.Status == "cancelled" {
		return false, fmt.Errorf("QEMU: the machine's state: %s", s.Status+" "+s.Desc)
	}
	return s.Status == "completed", nil
}

// version is QEMU's.
func (m *monitor) version() (string, error) {
	var v struct {
		QEMU struct {
			Major, Minor, Micro int
		} `json:"qemu"`
		Package string `json:"package"`
	}
	err := m.do("query-version", nil, nil, &v)
	return fmt.Sprintf("%d.%d.%d %s", v.QEMU.Major, v.QEMU.Minor, v.QEMU.Micro, v.Package), err
}
