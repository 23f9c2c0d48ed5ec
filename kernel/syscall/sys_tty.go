package syscall

import (
	"hardtack/abi/linux"
	"hardtack/kernel/base/creds"
	"hardtack/kernel/process/proc"
	"hardtack/kernel/tty"
)

var ttyCalls = []Call{
	{linux.SYS_vhangup, "vhangup", sysVhangup, "works"},
}

// sysVhangup is vhangup(): it hangs the caller's terminal up.
func sysVhangup(t *proc.Thread, _ *Args) (uint64, linux.Errno) {
	if !t.Cred().Has(creds.CapSysTTYConfig) {
		return 0, linux.EPERM
	}
	if x := tty.Controlling(&t.Ctx); x != nil {
		x.Hangup()
	}
	return 0, 0
}
