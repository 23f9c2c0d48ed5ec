package main

import (
	"fmt"
	"math"

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

const sidesText = `
Where a one-way message of 56 bytes goes: the computation of each side by itself, without
moving a cache line (load sides, ref sides; least of all rounds), is %.1f ns to send and %.1f ns
to receive; in C, where the compiler inlines all of it into one loop, %.1f and %.1f ns. The
slower side sets the pace, and moving lines comes on top, so the row cannot be below %.1f ns. What
C does not do: look at the connection's state, at the context, at the peer's sleep and at the
limits of the message, number messages for sending again, and copy the message twice (out of the
slot, which the peer may change, and into the caller's type).
`

// sides measures what the two sides of a one-way message compute.
func sides(r runner, rounds int) (string, error) {
	least := [4]float64{math.Inf(1), math.Inf(1), math.Inf(1), math.Inf(1)}
	n := fmt.Sprint(max(1000000/max(r.part, 1), 1000))
	for range rounds {
		for i, program := range []string{"load", "ref"} {
			out, err := r.output(program, "sides", n, "56", "0", "0")
			if err != nil {
				return "", err
			}
			var send, recv float64
			if _, err := fmt.Sscan(out, &send, &recv); err != nil || send <= 0 || recv <= 0 {
				return "", fmt.Errorf("%s sides printed %q", program, out)
			}
			least[2*i], least[2*i+1] = min(least[2*i], send), min(least[2*i+1], recv)
		}
	}
	return fmt.Sprintf(sidesText, least[0], least[1], least[2], least[3], max(least[0], least[1])), nil
}

// bounds measures what is not a row.
func bounds(r runner, rounds int) (string, error) {
	text, err := sides(r, rounds)
	if err != nil {
		return "", err
	}
	var places []float64
	for range rounds {
		v, err := r.measure("ref place 1000 32 0 1")
		if err != nil {
			return "", err
		}
		places = append(places, v.time)
	}
	return text + fmt.Sprintf(boundsText, report.Median(places)), nil
}
