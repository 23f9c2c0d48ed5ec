package reserve

import (
	"testing"

	"hardtack/kernel/base/wait"
)

// Users who hold little come first, and get what the others must leave. When it becomes known
// who holds much, those who wait change places.
func TestQueueOfUsersWhoHoldLittle(t *testing.T) {
	much := map[uint32]bool{1: true}
	free := int64(100)
	q := NewQueue(Supply{
		Free: func(much bool) int64 {
			if much {
				return free - 50
			}
			return free
		},
		Most: noLimit,
		Much: func(owner uint32) bool { return much[owner] },
	})
	claim := func(owner uint32, bytes int64) *Claim {
		c, s := new(Claim), new(wait.Sleeper)
		s.Arm()
		q.Enter(c, bytes, owner, s)
		return c
	}
	first, second := claim(1, 60), claim(1, 40)
	wantGranted(t, "who holds much and wants what it must leave", first, false)
	wantGranted(t, "another behind it", second, false)
	little := claim(2, 90)
	wantGranted(t, "who holds little", little, true)
	next := claim(2, 20)
	wantGranted(t, "what is not there", next, false)
	free = 160 // 110 of it for those who hold much, of which 90 are promised
	q.Serve()
	wantGranted(t, "who holds little, again", next, true)
	wantGranted(t, "who holds much, still", first, false)
	q.Leave(little)
	wantGranted(t, "who holds much, once there is enough", first, true)
	wantGranted(t, "the one behind it", second, false)
	much[1] = false
	q.Sort()
	if q.lines[1].head != nil || q.lines[0].head != second {
		t.Fatal("a claim did not change its line")
	}
	q.Serve()
	wantGranted(t, "who does not hold much any more", second, true)
	if q.Waiting() != 0 {
		t.Errorf("%d wait", q.Waiting())
	}
}

// Changing lines keeps the order of arrival.
func TestQueueSortKeepsTheOrder(t *testing.T) {
	much := map[uint32]bool{}
	q := NewQueue(Supply{Free: func(bool) int64 { return 0 }, Most: noLimit, Much: func(owner uint32) bool { return much[owner] }})
	var claims []*Claim
	for i := range uint32(9) {
		c, s := new(Claim), new(wait.Sleeper)
		s.Arm()
		q.Enter(c, 1, i%3, s)
		claims = append(claims, c)
	}
	order := func(l *list) (got []uint32) {
		for c := l.head; c != nil; c = c.next {
			got = append(got, c.owner)
		}
		return got
	}
	much[1], much[2] = true, true
	q.Sort()
	if got := order(&q.lines[1]); len(got) != 6 || got[0] != 1 || got[1] != 2 || got[5] != 2 {
		t.Errorf("who holds much: %v", got)
	}
	much[1] = false
	q.Sort()
	if got := order(&q.lines[0]); len(got) != 6 || got[0] != 0 || got[3] != 1 {
		t.Errorf("who holds little: %v", got)
	}
	for _, c := range claims {
		q.Leave(c)
	}
	if q.Waiting() != 0 || q.lines[0].head != nil || q.lines[1].head != nil {
		t.Errorf("%d wait", q.Waiting())
	}
}
