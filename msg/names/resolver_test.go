package names

import (
	"errors"
	"reflect"
	"testing"

	"hardtack/msg"
)

func TestResolver(t *testing.T) {
	_, path := testServer(t)
	_, farPath := testServer(t) // stands for the directory between machines
	ctx := testContext(t)
	a := Resolver(open(t, path), open(t, farPath))
	sameMachine := Resolver(open(t, path), open(t, farPath))
	_, otherPath := testServer(t)
	otherMachine := Resolver(open(t, otherPath), open(t, farPath))

	e := msg.Endpoint{Interface: "ping", Fingerprint: msg.Fingerprint{1, 2, 15: 3}, Addrs: []string{"unix:@x", "nats:y"}}
	if _, err := sameMachine.Resolve(ctx, "ping", false); !errors.Is(err, msg.ErrNoName) {
		t.Errorf("before: %v", err)
	}
	waited := make(chan error, 1)
	go func() {
		got, err := otherMachine.Resolve(ctx, "ping", true)
		if err == nil && !reflect.DeepEqual(got.Addrs, []string{"nats:y"}) {
			t.Errorf("the other machine gets %v", got.Addrs)
		}
		waited <- err
	}()
	withdraw, err := a.Publish(ctx, "ping", e)
	if err != nil {
		t.Fatal(err)
	}
	if err := <-waited; err != nil {
		t.Errorf("the other machine: %v", err)
	}
	if got, err := sameMachine.Resolve(ctx, "ping", true); err != nil || !reflect.DeepEqual(got, e) {
		t.Errorf("the same machine gets %+v, %v", got, err)
	}
	for _, r := range []msg.Resolver{sameMachine, otherMachine} {
		if _, err := r.Publish(ctx, "ping", e); !errors.Is(err, msg.ErrTaken) {
			t.Errorf("Publish of a taken name: %v", err)
		}
	}
	if err := withdraw(); err != nil {
		t.Error(err)
	}
	if withdraw, err = otherMachine.Publish(ctx, "ping", e); err != nil {
		t.Errorf("Publish after withdraw: %v", err)
	} else if err := withdraw(); err != nil {
		t.Error(err)
	}
	// Only addresses of this machine are no matter of the others.
	if _, err := a.Publish(ctx, "near", msg.Endpoint{Interface: "i", Addrs: []string{"unix:@x"}}); err != nil {
		t.Error(err)
	}
	if _, err := otherMachine.Resolve(ctx, "near", false); !errors.Is(err, msg.ErrNoName) {
		t.Errorf("a near name from afar: %v", err)
	}
	if _, err := a.Place(ctx, "not a name", "unix"); !errors.Is(err, ErrInvalid) {
		t.Errorf("Place: %v", err)
	}
}

func FuzzEndpoint(f *testing.F) {
	f.Add(FormatEndpoint(msg.Endpoint{Interface: "ping", Addrs: []string{"unix:@x", "nats:y"}}))
	f.Add([]byte("a\nb\nc"))
	f.Add([]byte(""))
	f.Fuzz(func(t *testing.T, value []byte) {
		e, err := ParseEndpoint(value)
		if err != nil {
			return
		}
		again, err := ParseEndpoint(FormatEndpoint(e))
		if err != nil || !reflect.DeepEqual(e, again) {
			t.Fatalf("%q: %+v, then %+v, %v", value, e, again, err)
		}
	})
}
