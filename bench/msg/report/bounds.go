package main

import (
	"fmt"

	"hardtack/bench/internal/report"
)

// What bounds the figures of the first table.

const boundsText = `
Go channels: a message through a Go channel costs at least a switch to the goroutine that
polls the ring and one back, on each side. "One hand-over a side" is exactly that: the
direct form and a goroutine beside it, joined by unbuffered channels (load handover). So
Go's channels cannot reach twice the time of the C ring if a process has one processor.

Placement of rings: of 32 pairs of pages, the slowest took %.2f times as long as the fastest
(ref place, median of the rounds). Options.Try times some placements when a connection is
bound and keeps the best. It is off by default, because there is so little to gain here.
`

// bounds measures what is not a row.
func bounds(r runner, rounds int) (string, error) {
	var places []float64
	for range rounds {
		v, err := r.measure("ref place 1000 32 0 1")
		if err != nil {
			return "", err
		}
		places = append(places, v.time)
	}
	return fmt.Sprintf(boundsText, report.Median(places)), nil
}
