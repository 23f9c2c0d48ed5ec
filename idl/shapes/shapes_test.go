package shapes

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"hardtack/msg"
	"hardtack/msg/wire"
)

var inproc = &msg.Options{Schemes: []string{"inproc"}}

func pair(t testing.TB) (a, b *Conn) {
	t.Helper()
	a, b, err := Pair(context.Background(), inproc)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close(); b.Close() })
	return a, b
}

// text is a string of at most n bytes, any bytes.
func text(n int) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string { return string(rapid.SliceOfN(rapid.Byte(), 0, n).Draw(t, "bytes")) })
}

func region() *rapid.Generator[Region] {
	return rapid.Custom(func(t *rapid.T) Region {
		r := Region{Base: rapid.Uint32().Draw(t, "base"), Length: rapid.Uint64().Draw(t, "length"), Kind: Mapping(rapid.IntRange(0, 2).Draw(t, "kind"))}
		for i := range r.Cores {
			r.Cores[i] = rapid.Uint64().Draw(t, "core")
		}
		return r
	})
}

func segment() *rapid.Generator[Segment] {
	return rapid.Custom(func(t *rapid.T) Segment {
		return Segment{
			Regions: rapid.SliceOfN(region(), 0, 8).Draw(t, "regions"), Note: text(2000).Draw(t, "note"),
			Heading: text(40).Draw(t, "heading"), Tag: [4]byte([]byte(rapid.StringOfN(rapid.RuneFrom([]rune("abc")), 4, 4, 4).Draw(t, "tag"))),
		}
	})
}

// message is any message, without caps.
func message() *rapid.Generator[Msg] {
	return rapid.Custom(func(t *rapid.T) Msg {
		switch rapid.IntRange(0, 9).Draw(t, "which") {
		case 0:
			return &Nothing{}
		case 1:
			return rapid.Custom(func(t *rapid.T) *Scalars {
				s := rapid.Make[Scalars]().Draw(t, "scalars")
				s.U = Mapping(rapid.IntRange(0, 2).Draw(t, "u"))
				return &s
			}).Draw(t, "scalars")
		case 2:
			a := &Arrays{
				Words: rapid.SliceOfN(rapid.Uint16(), 0, 100).Draw(t, "words"),
				Raw:   rapid.SliceOfN(rapid.Byte(), 0, 4096).Draw(t, "raw"), Text: []byte(text(300).Draw(t, "text")),
				All: rapid.SliceOfN(region(), 0, 16).Draw(t, "all"), Names: rapid.SliceOfN(text(100), 0, 3).Draw(t, "names"),
			}
			for i := range a.Sum {
				a.Sum[i] = rapid.Byte().Draw(t, "sum")
			}
			a.One[3], a.Two[1][2] = rapid.Uint64().Draw(t, "one"), rapid.Uint64().Draw(t, "two")
			copy(a.Mac[:], text(6).Draw(t, "mac"))
			return a
		case 3:
			return &Texts{Unbound: text(70000).Filter(func(s string) bool { return len(s) <= 65536 }).Draw(t, "unbound"),
				Bound: text(256).Draw(t, "bound"), Heading: text(40).Draw(t, "heading")}
		case 4:
			return &Nested{Seg: segment().Draw(t, "seg"), From: Address{Port: rapid.Uint16().Draw(t, "port")}}
		case 5:
			return &Answer{Register: wire.Errval(rapid.Uint32().Draw(t, "register")), Type: rapid.Uint64().Draw(t, "type")}
		case 6:
			return &RegionMsg{Region: region().Draw(t, "region")}
		case 7:
			return &MsgMsg{S: text(600).Draw(t, "s")}
		case 8:
			return &LookUpReply{call: rapid.Uint32().Draw(t, "call"), Seg: segment().Draw(t, "seg"), Found: wire.Iref(rapid.Uint64().Draw(t, "found"))}
		default:
			return &ReadBlockCall{call: rapid.Uint32().Draw(t, "call"), Lba: rapid.Uint32().Draw(t, "lba")}
		}
	})
}

// same compares messages; an empty slice is as good as none.
func same(a, b Msg) bool {
	normal := func(v reflect.Value) {
		var walk func(reflect.Value)
		walk = func(v reflect.Value) {
			switch v.Kind() {
			case reflect.Struct:
				for i := range v.NumField() {
					if v.Type().Field(i).IsExported() {
						walk(v.Field(i))
					}
				}
			case reflect.Slice:
				if v.Len() == 0 {
					v.SetZero()
				}
				for i := range v.Len() {
					walk(v.Index(i))
				}
			}
		}
		walk(v)
	}
	normal(reflect.ValueOf(a).Elem())
	normal(reflect.ValueOf(b).Elem())
	return reflect.DeepEqual(a, b)
}

// What is sent in either form is received in either form.
func TestRoundTrip(t *testing.T) {
	ctx := context.Background()
	a, b := pair(t)
	c, d := pair(t)
	ch := d.Channels()
	rapid.Check(t, func(t *rapid.T) {
		m := message().Draw(t, "message")
		sent := make(chan error, 2)
		go func() { sent <- a.Send(ctx, m) }()
		got, err := b.Recv(ctx)
		if serr := <-sent; err != nil || serr != nil {
			t.Fatal(serr, err)
		}
		if !same(m, got) {
			t.Fatalf("sent %#v\nreceived %#v", m, got)
		}
		go func() { sent <- c.Send(ctx, m) }()
		got, ok := <-ch.Recv
		if serr := <-sent; !ok || serr != nil {
			t.Fatal(serr, <-ch.Errs)
		}
		if !same(m, got) {
			t.Fatalf("sent %#v\nreceived from the channel %#v", m, got)
		}
	})
}

// A body of any bytes is decoded or refused, never more; what is decoded is
// encoded to the same bytes.
func FuzzDecode(f *testing.F) {
	ctx := context.Background()
	for num := range Interface.Messages {
		f.Add(uint16(num), []byte{})
		f.Add(uint16(num), make([]byte, 80))
		f.Add(uint16(num), []byte(strings.Repeat("\x01\x00\x00\x00", 60)))
	}
	f.Fuzz(func(t *testing.T, num uint16, body []byte) {
		d := Interface.Message(num%uint16(len(Interface.Messages)) + 1)
		if len(body) < d.Min || len(body) > d.Max || len(body) > 60000 {
			return
		}
		if shown := d.Format(body); shown == "" {
			t.Fatal("nothing shown")
		}
		if d.Caps > 0 {
			return
		}
		a, b := pair(t)
		for _, c := range []*Conn{a, b} {
			defer c.Close()
		}
		slot, err := a.BeginLong(ctx, len(body))
		if err != nil {
			t.Fatal(err)
		}
		copy(slot, body)
		n := num%uint16(len(Interface.Messages)) + 1
		if err := a.CommitLong(ctx, n); err != nil {
			t.Fatal(err)
		}
		m, err := b.Recv(ctx)
		if err != nil {
			if b.Err() == nil {
				t.Fatal("the connection is open after a wrong body")
			}
			return
		}
		if err := b.Send(ctx, m); err != nil {
			t.Fatal(err)
		}
		num2, again, err := a.Next(ctx)
		if err != nil || num2 != n || string(again) != string(body) {
			t.Fatalf("decoded and encoded %d % x\ngives %d % x, %v", n, body, num2, again, err)
		}
	})
}

func TestLimits(t *testing.T) {
	ctx := context.Background()
	a, b := pair(t)
	for _, m := range []Msg{
		&Arrays{Words: make([]uint16, 101)}, &Texts{Bound: strings.Repeat("x", 257)}, &Nested{Seg: Segment{Regions: make([]Region, 9)}},
		&Nested{Seg: Segment{Heading: strings.Repeat("x", 41)}}, &ReadBlockReply{Buffer: make([]byte, 2049)}, nil,
	} {
		if err := a.Send(ctx, m); err == nil {
			t.Errorf("%T over a limit was sent", m)
		}
	}
	if _, err := b.Recv(ctx); !errors.Is(err, msg.ErrTooLarge) || b.Err() != nil {
		t.Errorf("who waits for the reply is told %v; the connection: %v", err, b.Err())
	}
	if err := a.Send(ctx, &Texts{Bound: strings.Repeat("x", 256)}); err != nil {
		t.Error(err)
	}
	if m, err := b.Recv(ctx); err != nil || len(m.(*Texts).Bound) != 256 {
		t.Error(m, err)
	}
}

func TestFormat(t *testing.T) {
	ctx := context.Background()
	a, b := pair(t)
	for _, c := range []struct {
		m    Msg
		want string
	}{
		{&Nothing{}, "nothing{}"},
		{&Ask{Type: 7}, "ask{type: 7}"},
		{&ReadBlockCall{call: 3, Lba: 9}, "read_block{call: 3, lba: 9}"},
		{&RegionMsg{Region{Base: 1, Kind: MappingNone}}, "region{region: {Base: 1, Length: 0, Kind: NONE, Cores: [0 0 0 0]}}"},
		{&Texts{Bound: "a\n"}, `texts{unbound: "", bound: "a\n", heading: ""}`},
		{&Arrays{Raw: make([]byte, 20)}, `arrays{mac: [0 0 0 0 0 0], words: [], raw: [0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 … (20)], text: [], one: [0 0 0 0], two: [[0 0 0 0] [0 0 0 0]], all: [], names: [], sum: [0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 … (32)]}`},
	} {
		if err := a.Send(ctx, c.m); err != nil {
			t.Fatal(err)
		}
		num, body, err := b.Next(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if got := Interface.Message(num).Format(body); got != c.want {
			t.Errorf("got %s\nwant %s", got, c.want)
		}
	}
}

// Many goroutines have calls under way on one connection; the server answers in
// the order that it likes.
func TestCalls(t *testing.T) {
	ctx := context.Background()
	a, b := pair(t)
	const callers, calls = 8, 50
	go func() {
		var held []ReadBlockCall
		for {
			m, err := b.Recv(ctx)
			if err != nil {
				return
			}
			switch m := m.(type) {
			case *ReadBlockCall:
				held = append(held, *m)
				if b.Ready() {
					continue
				}
				for i := range held { // the last first
					c := &held[len(held)-1-i]
					b.ReplyReadBlock(ctx, c, &ReadBlockReply{Buffer: []byte{byte(c.Lba), byte(c.Lba >> 8)}, Err: wire.Errval(c.Lba)})
				}
				held = held[:0]
			case *PingCall:
				b.SendMsgMsg(ctx, &MsgMsg{S: "between"})
				b.ReplyPing(ctx, m, &PingReply{})
			default:
				t.Errorf("received %T", m)
			}
		}
	}()
	var between []string
	k := NewClient(a, func(m Msg) { between = append(between, m.(*MsgMsg).S) })
	if _, err := k.Ping(ctx, PingCall{}); err != nil {
		t.Fatal(err)
	}
	if len(between) != 1 || between[0] != "between" {
		t.Errorf("messages between: %q", between)
	}
	var work sync.WaitGroup
	for g := range callers {
		work.Add(1)
		go func() {
			defer work.Done()
			for i := range calls {
				lba := uint32(g*calls + i)
				r, err := k.ReadBlock(ctx, ReadBlockCall{Lba: lba})
				if err != nil || r.Err != wire.Errval(lba) || len(r.Buffer) != 2 || r.Buffer[0] != byte(lba) || r.Buffer[1] != byte(lba>>8) {
					t.Errorf("call %d: %v, %v", lba, r, err)
					return
				}
			}
		}()
	}
	work.Wait()
}

// The direct form of fixed-size messages allocates nothing.
func TestAllocs(t *testing.T) {
	ctx := context.Background()
	a, b := pair(t)
	var sum uint64
	n := testing.AllocsPerRun(1000, func() {
		if err := a.Send(ctx, &Ask{Type: 5}); err != nil {
			t.Fatal(err)
		}
		m, err := b.Recv(ctx)
		if err != nil {
			t.Fatal(err)
		}
		switch m := m.(type) {
		case *Ask:
			sum += m.Type
		default:
		}
	})
	if n != 0 {
		t.Errorf("%v allocations a message", n)
	}
}
