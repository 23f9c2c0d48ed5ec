package main

import (
	"testing"
	"time"
)

func TestParseTime(t *testing.T) {
	local := func(s string) string {
		at, err := time.ParseInLocation("2006-01-02 15:04:05.999999999", s, time.Local)
		if err != nil {
			t.Fatal(err)
		}
		return at.UTC().Format(time.RFC3339Nano)
	}
	for s, want := range map[string]string{
		"2026-11-26T17:00:01Z": "2026-11-26T17:00:01Z", "2026-11-26T17:00:01.25+01:00": "2026-11-26T16:00:01.25Z", "2026-11-26T17:00Z": "2026-11-26T17:00:00Z",
		"2026-11-26T17:00:01.5": local("2026-11-26 17:00:01.5"), "2026-11-26T17:00": local("2026-11-26 17:00:00"),
		"2026-11-26T17": local("2026-11-26 17:00:00"), "2026-11-26": local("2026-11-26 00:00:00"), "2026-11-26Z": "2026-11-26T00:00:00Z",
		"1136073845": "2006-01-01T00:04:05Z", "1136073845.5": "2006-01-01T00:04:05.5Z", "1136073845.000000001": "2006-01-01T00:04:05.000000001Z",
	} {
		if at, err := parseTime("--since", s); err != nil || at.UTC().Format(time.RFC3339Nano) != want {
			t.Errorf("%s: %v, %v, want %s", s, at, err, want)
		}
	}
	before := time.Now()
	if at, err := parseTime("--since", "1h30m"); err != nil || at.Before(before.Add(-90*time.Minute)) || at.After(time.Now().Add(-90*time.Minute)) {
		t.Errorf("1h30m: %v, %v", at, err)
	}
	for _, bad := range []string{"yesterday", "2026-13-01", "1.0000000001", "1.-5", "12:00"} {
		if at, err := parseTime("--since", bad); err == nil {
			t.Errorf("%s: %v", bad, at)
		}
	}
}
