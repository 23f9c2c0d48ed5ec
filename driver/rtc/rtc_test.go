package rtc_test

import (
	"testing"
	"time"

	"hardtack/driver"
	"hardtack/driver/qtest"
	"hardtack/driver/rtc"
)

// cmos is a clock of fixed content; it starts with an update under way, and
// moves on to the next content after a number of reads.
type cmos struct {
	driver.Platform
	index uint8
	reads int
	now   map[uint8]uint8
	next  map[uint8]uint8
	after int
}

func (c *cmos) Out8(port uint16, v uint8) { c.index = v }

func (c *cmos) In8(uint16) uint8 {
	c.reads++
	if c.index == 0x0a && c.reads < 20 {
		return 0x80
	}
	if c.next != nil && c.reads > c.after {
		if v, ok := c.next[c.index]; ok {
			return v
		}
	}
	return c.now[c.index]
}

func regs(b, century, year, month, day, hour, minute, second uint8) map[uint8]uint8 {
	return map[uint8]uint8{0x0b: b, 0x32: century, 9: year, 8: month, 7: day, 4: hour, 2: minute, 0: second}
}

func TestFormats(t *testing.T) {
	want := time.Date(2026, 11, 20, 15, 4, 5, 0, time.UTC)
	for name, c := range map[string]struct {
		regs    map[uint8]uint8
		century uint8
		want    time.Time
		bad     bool
	}{
		"BCD, 24 hours":    {regs: regs(0x02, 0x20, 0x26, 0x11, 0x20, 0x15, 4, 5), century: 0x32, want: want},
		"binary, 24 hours": {regs: regs(0x06, 20, 26, 11, 20, 15, 4, 5), century: 0x32, want: want},
		"BCD, afternoon":   {regs: regs(0x00, 0x20, 0x26, 0x11, 0x20, 0x83, 4, 5), century: 0x32, want: want},
		"binary, noon":     {regs: regs(0x04, 20, 26, 11, 20, 0x8c, 4, 5), century: 0x32, want: want.Add(-3 * time.Hour)},
		"binary, midnight": {regs: regs(0x04, 20, 26, 11, 20, 12, 4, 5), century: 0x32, want: want.Add(-15 * time.Hour)},
		"no century":       {regs: regs(0x06, 0, 26, 11, 20, 15, 4, 5), want: want},
		"last century":     {regs: regs(0x06, 0, 99, 11, 20, 15, 4, 5), want: want.AddDate(-27, 0, 0)},
		"no BCD":           {regs: regs(0x02, 0x20, 0x2c, 0x11, 0x20, 0x15, 4, 5), bad: true},
		"month 13":         {regs: regs(0x06, 20, 26, 13, 20, 15, 4, 5), bad: true},
		"day 0":            {regs: regs(0x06, 20, 26, 12, 0, 15, 4, 5), bad: true},
		"hour 13 of 12":    {regs: regs(0x04, 20, 26, 12, 1, 13, 4, 5), bad: true},
		"no clock":         {regs: map[uint8]uint8{0x0b: 0xff}, bad: true},
	} {
		got, err := rtc.Read(&cmos{now: c.regs}, c.century)
		if (err != nil) != c.bad || !got.Equal(c.want) {
			t.Errorf("%s: %v, %v; want %v", name, got, err, c.want)
		}
	}
}

// A second that passes while the registers are read never mixes two times.
func TestUpdateWhileReading(t *testing.T) {
	a, b := regs(0x06, 20, 26, 12, 31, 23, 59, 59), regs(0x06, 20, 27, 1, 1, 0, 0, 0)
	for after := range 60 {
		got, err := rtc.Read(&cmos{now: a, next: b, after: after}, 0x32)
		if err != nil || got.Year() == 2026 && got.Second() != 59 || got.Year() == 2027 && got.Second() != 0 {
			t.Errorf("update after %d reads: %v, %v", after, got, err)
		}
	}
}

func TestQEMU(t *testing.T) {
	m := qtest.Start(t, "microvm,rtc=on", "", 0, "-rtc", "base=2031-02-03T04:05:06")
	got, err := rtc.Read(m, 0x32)
	if want := time.Date(2031, 2, 3, 4, 5, 6, 0, time.UTC); err != nil || got.Sub(want).Abs() > 20*time.Second {
		t.Errorf("%v, %v; want %v", got, err, want)
	}
	m = qtest.Start(t, "microvm,rtc=off", "", 0)
	if got, err := rtc.Read(m, 0x32); err == nil {
		t.Errorf("no clock: %v", got)
	}
}
