package procfs

import (
	"fmt"

	"hardtack/abi/linux"
	"hardtack/kernel/base/hook"
)

// What the terminals' code knows.
var (
	// PtyMinors is how many pseudo-terminals there can ever be.
	PtyMinors = hook.Default(func() int { return 0 })
	// Ptys is how many there are.
	Ptys = hook.Default(func() int64 { return 0 })
)

// ttyDir is /proc/tty. Linux has two empty directories in it that no driver uses any
// more, but for serial ports.
var ttyDir = &entry{name: "tty", mode: 0o555, kids: []*entry{
	live("drivers", ttyDrivers),
	file("ldiscs", "n_tty       0\n"),
}}

// ttyDrivers lists the device files of terminals: the pseudo-drivers first, as in Linux.
func ttyDrivers() string {
	var b []byte
	line := func(driver, name string, major uint32, minors, typ string) {
		b = fmt.Appendf(b, "%-20s /dev/%-8s %3d %s %s\n", driver, name, major, minors, typ)
	}
	one := func(n int) string { return fmt.Sprintf("%7d", n) }
	line("/dev/tty", "tty", linux.TTYAUX_MAJOR, one(0), "system:/dev/tty")
	line("/dev/console", "console", linux.TTYAUX_MAJOR, one(1), "system:console")
	line("/dev/ptmx", "ptmx", linux.TTYAUX_MAJOR, one(2), "system")
	line("serial", "ttyS", linux.TTY_MAJOR, one(linux.TTYS_MINOR), "serial")
	if n := PtyMinors.Call(); n > 0 {
		line("pty_slave", "pts", linux.UNIX98_PTY_SLAVE, fmt.Sprintf("0-%d", n-1), "pty:slave")
	}
	return string(b)
}
