package main

import (
	"fmt"

	"hardtack/bench/internal/report"
)

// What bounds the figures of the first table.

const boundsText = `
Go channels: what goes through one costs at least a switch to the goroutine that polls
the ring and one back, on each side. "One hand-over a side" is that and no more: the
direct form and a goroutine beside it, joined by channels without room (load handover).
So twice the C ring cannot be had with Go's own channels where a process has one
processor.

Where a ring lies: of 32 pairs of pages, the slowest took %.2f times the fastest (ref
place, the median of the rounds). Options.Try times some when a connection is bound and
keeps the best; it is off unless asked for, since here there is so little to gain.
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
