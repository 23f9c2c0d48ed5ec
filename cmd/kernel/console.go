package main

import (
	"os"

	"hardtack/abi/linux"
	"hardtack/arch/amd64"
	"hardtack/driver/serial"
	"hardtack/kernel/fs/initramfs"
	"hardtack/kernel/fs/vfs"
	"hardtack/kernel/tty"
	"hardtack/nucleus"
)

// console is the serial port as process 1's console: a terminal, or bytes in
// and out where the host's standard input is none.
type console struct {
	platform *platform
	port     *serial.Port
	terminal *tty.Console    // nil where raw is set
	raw      *tty.RawConsole // nil where terminal is set
}

func newConsole(p *platform, config *initramfs.BootConfig) *console {
	c := &console{platform: p}
	write := func(b []byte) {
		if nucleus.ClusterIndex() > 0 {
			_, _ = os.Stdout.Write(b) // the log, which is always there
		} else if c.port != nil {
			_, _ = c.port.Write(b) // it waits instead of failing
		}
	}
	var input func([]byte)
	var e linux.Errno
	if config.Terminal {
		c.terminal = tty.NewConsole(write)
		c.terminal.SetSize(config.Rows, config.Cols)
		input, e = c.terminal.Input, c.terminal.Register()
	} else {
		c.raw = tty.NewRawConsole(write)
		input, e = c.raw.Input, c.raw.Register()
	}
	if e != 0 {
		warn("console: %v", e)
	}
	if nucleus.ClusterIndex() > 0 {
		return c // the port is the first cluster's
	}
	port, err := serial.Open(p, serial.COM1, serial.COM1IRQ, input)
	if err != nil {
		warn("serial port: %v", err)
	}
	c.port = port
	return c
}

// open returns process 1's standard input, output and error.
func (k *kernel) openConsole(root *vfs.FSContext) *vfs.File {
	f, e := vfs.Open(k.ctx, root, nil, "/dev/console", linux.O_RDWR|linux.O_NOCTTY, 0)
	if e != 0 {
		warn("/dev/console: %v", e)
		return nil
	}
	if t := k.console.terminal; t != nil {
		t.Adopt(1, 1)
	}
	return f
}

// drain waits until what was written is on its way to the host.
func (c *console) drain() {
	if c.terminal != nil {
		c.terminal.Flush()
	}
	if c.port == nil {
		return
	}
	const lineStatus, transmitterEmpty = 5, 1 << 6
	for i := 0; i < 1e6 && c.platform.In8(serial.COM1+lineStatus)&transmitterEmpty == 0; i++ {
		amd64.Pause()
	}
}

// eof ends the input, once what came before has been read from the port.
func (c *console) eof() {
	switch {
	case c.port == nil:
	case c.terminal != nil:
		c.port.AfterInput(c.terminal.EOF)
	default:
		c.port.AfterInput(c.raw.EOF)
	}
}

func (c *console) resize(rows, cols uint16) {
	if c.terminal != nil {
		c.terminal.SetSize(int(rows), int(cols))
	}
}
