package taskbench

import "testing"

func TestMessages(t *testing.T) {
	l, err := Messages(1, 200)
	if err != nil {
		t.Fatal(err)
	}
	if len(l) != 4 {
		t.Fatalf("%v", l)
	}
	t.Log(l)
	r, err := RemoveCore(200, 1)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Trips) != 200 {
		t.Errorf("%d trips", len(r.Trips))
	}
	t.Logf("worst %.1f µs without, %.1f µs with a removal", r.Before, r.During)
}
