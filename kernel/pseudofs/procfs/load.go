package procfs

import (
	"fmt"

	"hardtack/kernel/process/proc"
)

func loadavg() string {
	a := proc.LoadAverages()
	_, threads := proc.Counts()
	return fmt.Sprintf("%.2f %.2f %.2f %d/%d %d\n", a[0], a[1], a[2], max(proc.Running(), 1), threads, proc.LastPID())
}
