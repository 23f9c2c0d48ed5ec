// Command cluster runs inside a machine with several kernels: it shows them, runs programs
// in them, and ends them. As /sbin/cluster it is also process 1 of a cluster that was given
// none.
package main

import (
	"os"

	"hardtack/tool/cluster"
)

func main() { os.Exit(cluster.Main(os.Args[1:])) }
