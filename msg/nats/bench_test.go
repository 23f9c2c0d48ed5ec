package nats

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"hardtack/msg"
)

// Round trips of 56 bytes between two connections to one server: what the
// client library's own request and reply takes, and what a link adds. To
// compare, run both in turn: -bench RoundTrip -count 5.
func BenchmarkRoundTrip(b *testing.B) {
	s := newServer(b)
	ctx := context.Background()
	payload := make([]byte, msg.SlotBytes)
	b.Run("request", func(b *testing.B) {
		one, two := connectRaw(b, s.url), connectRaw(b, s.url)
		if _, err := two.Subscribe("echo", func(m *nats.Msg) { m.Respond(m.Data) }); err != nil {
			b.Fatal(err)
		}
		two.Flush()
		for b.Loop() {
			if _, err := one.Request("echo", payload, time.Minute); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("link", func(b *testing.B) {
		client, serving := pair(b, open(b, s.url), open(b, s.url))
		go func() {
			for {
				frame, _, err := serving.Recv(ctx)
				if err != nil || serving.Send(ctx, frame, nil) != nil {
					return
				}
			}
		}()
		for b.Loop() {
			if err := client.Send(ctx, payload, nil); err != nil {
				b.Fatal(err)
			}
			if _, _, err := client.Recv(ctx); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// One way, 1 KiB: plain publish and subscribe, which may lose, and a link.
func BenchmarkOneWay(b *testing.B) {
	s := newServer(b)
	ctx := context.Background()
	payload := make([]byte, 1024)
	b.Run("publish", func(b *testing.B) {
		b.SetBytes(int64(len(payload)))
		one, two := connectRaw(b, s.url), connectRaw(b, s.url)
		sub, err := two.SubscribeSync("flow")
		if err != nil {
			b.Fatal(err)
		}
		sub.SetPendingLimits(-1, -1)
		two.Flush()
		done := make(chan error, 1)
		n := 0
		for b.Loop() {
			one.Publish("flow", payload)
			if n++; n%1000 == 0 { // as a window would
				go func() {
					for range 1000 {
						if _, err := sub.NextMsg(time.Minute); err != nil {
							done <- err
							return
						}
					}
					done <- nil
				}()
				if err := <-done; err != nil {
					b.Fatal(err)
				}
			}
		}
	})
	b.Run("link", func(b *testing.B) {
		b.SetBytes(int64(len(payload)))
		client, serving := pair(b, open(b, s.url), open(b, s.url))
		go func() {
			for {
				if _, _, err := serving.Recv(ctx); err != nil {
					return
				}
			}
		}()
		for b.Loop() {
			if err := client.Send(ctx, payload, nil); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func connectRaw(b *testing.B, url string) *nats.Conn {
	nc, err := nats.Connect(url)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(nc.Close)
	return nc
}
