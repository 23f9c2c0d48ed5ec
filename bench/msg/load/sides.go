package main

import (
	"context"
	"fmt"
	"math"
	"time"

	"hardtack/bench/msg/trip"
	"hardtack/msg"
)

// sides prints what sending and what receiving 56 bytes one way take when no cache line
// moves: one goroutine does both, by turns, a batch that fits into the ring each.
func sides(n int) error {
	const batch = 50
	ctx := context.Background()
	here, there, err := trip.Pair(ctx, &msg.Options{Schemes: []string{"inproc"}})
	if err != nil {
		return err
	}
	m := &trip.Full{}
	send, recv := time.Duration(math.MaxInt64), time.Duration(math.MaxInt64)
	for i := 0; i < n; i += batch {
		begun := time.Now()
		for range batch {
			m.Seq++
			if err := here.SendFull(ctx, m); err != nil {
				return err
			}
		}
		sent := time.Now()
		for range batch {
			got, err := there.Recv(ctx)
			if err != nil {
				return err
			}
			Sink += got.(*trip.Full).Seq
		}
		send, recv = min(send, sent.Sub(begun)), min(recv, time.Since(sent))
	}
	fmt.Printf("%.2f %.2f\n", float64(send)/batch, float64(recv)/batch)
	return nil
}
