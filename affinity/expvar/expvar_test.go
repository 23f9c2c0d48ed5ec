package expvar_test

import (
	"encoding/json"
	"expvar"
	"testing"

	"hardtack/affinity"
	_ "hardtack/affinity/expvar"
)

// What the variable says is what the package says.
func TestExpvar(t *testing.T) {
	v := expvar.Get("affinity")
	if v == nil {
		t.Fatal("no variable affinity")
	}
	c := make(chan int, 7)
	for i := range 20_000 {
		c <- i
		<-c
	}
	var got struct {
		Available bool
		Policy    string
		Metrics   map[string]uint64
		Channels  []affinity.Channel
	}
	if err := json.Unmarshal([]byte(v.String()), &got); err != nil {
		t.Fatal(err)
	}
	if got.Available != affinity.Available() || got.Policy != affinity.Get().Policy.String() || len(got.Metrics) != len(affinity.All()) {
		t.Errorf("%s", v)
	}
	if !affinity.Available() {
		return
	}
	found := false
	for _, ch := range got.Channels {
		found = found || ch.Cap == 7 && ch.Touches > 30_000 && ch.Func == "hardtack/affinity/expvar_test.TestExpvar"
	}
	if !found || got.Metrics["/affinity/touches:touches"] < 30_000 {
		t.Errorf("the channel is not there: %s", v)
	}
}
