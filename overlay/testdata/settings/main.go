// Command settings prints what the environment has set.
package main

import (
	"fmt"

	"hardtack/affinity"
)

func main() {
	s := affinity.Get()
	fmt.Println(s.Policy, s.Period, s.Touches)
}
