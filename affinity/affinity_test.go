package affinity_test

import (
	"testing"
	"time"

	"hardtack/affinity"
)

func TestParsePolicy(t *testing.T) {
	for _, p := range []affinity.Policy{affinity.Off, affinity.Process, affinity.Node, affinity.Group} {
		if got, err := affinity.ParsePolicy(p.String()); err != nil || got != p {
			t.Errorf("ParsePolicy(%q) = %v, %v", p.String(), got, err)
		}
	}
	for _, bad := range []string{"", "GROUP", "group ", "one"} {
		if _, err := affinity.ParsePolicy(bad); err == nil {
			t.Errorf("ParsePolicy(%q) gave no error", bad)
		}
	}
}

func TestSetRefusesBadSettings(t *testing.T) {
	good := affinity.Settings{Policy: affinity.Off, Period: time.Second, Touches: 1}
	for name, change := range map[string]func(*affinity.Settings){
		"policy":  func(s *affinity.Settings) { s.Policy = 9 },
		"short":   func(s *affinity.Settings) { s.Period = 0 },
		"long":    func(s *affinity.Settings) { s.Period = 2 * time.Hour },
		"touches": func(s *affinity.Settings) { s.Touches = 0 },
	} {
		s := good
		change(&s)
		if err := affinity.Set(s); err == nil || err == affinity.ErrNotBuilt {
			t.Errorf("%s: Set gave %v", name, err)
		}
	}
}

// The tests below differ between a build by go and one by hardtack go; the
// package overlay runs this file both ways.

func TestWithoutOverlay(t *testing.T) {
	if affinity.Available() {
		t.Skip("built with the overlay")
	}
	if err := affinity.SetPolicy(affinity.Off); err != affinity.ErrNotBuilt {
		t.Errorf("SetPolicy: %v", err)
	}
	if _, _, err := affinity.Count(make(chan int)); err != affinity.ErrNotBuilt {
		t.Errorf("Count: %v", err)
	}
	if c := affinity.Channels(); c != nil {
		t.Errorf("Channels: %v", c)
	}
	s := []affinity.Sample{{Name: "/affinity/touches:touches", Value: 7}}
	if affinity.Read(s); s[0].Known || s[0].Value != 0 {
		t.Errorf("Read: %+v", s)
	}
}

func TestCount(t *testing.T) {
	for _, bad := range []any{nil, 3, (chan int)(nil)} {
		if _, _, err := affinity.Count(bad); err == nil || err == affinity.ErrNotBuilt {
			t.Errorf("Count(%T) gave %v", bad, err)
		}
	}
	if !affinity.Available() {
		t.Skip("built without the overlay")
	}
	for _, capacity := range []int{0, 1, 2, 4, 100, 3000} {
		for _, messages := range []int{1, 2, 99, 255, 256, 257, 1000, 30000} {
			c := make(chan int, capacity)
			go func() {
				for i := range messages {
					if i%3 == 0 {
						select {
						case c <- i:
						case <-time.After(time.Hour):
						}
					} else {
						c <- i
					}
				}
				close(c)
			}()
			n := 0
			for range c {
				n++
			}
			touches, cross, err := affinity.Count(c)
			if err != nil || n != messages || touches != uint32(2*messages) || cross > touches {
				t.Errorf("capacity %d, %d messages: Count = %d, %d, %v", capacity, messages, touches, cross, err)
			}
		}
	}
	c := make(chan int, 3)
	c <- 1
	c <- 2
	if touches, _, _ := affinity.Count(c); touches != 2 {
		t.Errorf("two that were sent and not received are %d touches", touches)
	}
}

func TestChannelsShowCreationSite(t *testing.T) {
	if !affinity.Available() {
		t.Skip("built without the overlay")
	}
	c := make(chan [3]int64, 5)
	var m affinity.Meter
	m.Channels()
	find := func() *affinity.Channel {
		for _, ch := range m.Channels() {
			if ch.Cap == 5 && ch.ElemSize == 24 {
				return &ch
			}
		}
		return nil
	}
	work := func() {
		for range 10000 {
			c <- [3]int64{}
			<-c
		}
	}
	work()
	ch := find()
	if ch == nil {
		t.Fatal("20000 touches, and the channel is not in the table")
	}
	if ch.Func != "hardtack/affinity_test.TestChannelsShowCreationSite" || ch.Line == 0 {
		t.Errorf("made in %s (%s:%d)", ch.Func, ch.File, ch.Line)
	}
	if ch.Touches < 20000-4096 || ch.Touches > 20000 {
		t.Errorf("%d touches", ch.Touches)
	}
	work()
	if ch = find(); ch == nil || ch.PerSecond <= 0 || ch.Share > 0.01 {
		t.Errorf("the second look gave %+v", ch)
	}
}

func TestSetAndMetrics(t *testing.T) {
	if !affinity.Available() {
		t.Skip("built without the overlay")
	}
	was := affinity.Get()
	defer affinity.Set(was)
	want := affinity.Settings{Policy: affinity.Group, Period: 20 * time.Millisecond, Touches: 5}
	if err := affinity.Set(want); err != nil || affinity.Get() != want {
		t.Fatalf("Set: %v, then Get = %+v", err, affinity.Get())
	}
	var samples []affinity.Sample
	for _, d := range affinity.All() {
		samples = append(samples, affinity.Sample{Name: d.Name})
	}
	samples = append(samples, affinity.Sample{Name: "/affinity/none:such"})
	affinity.Read(samples)
	for i, s := range samples {
		if s.Known != (i < len(samples)-1) {
			t.Errorf("%s: known is %v", s.Name, s.Known)
		}
	}
}
