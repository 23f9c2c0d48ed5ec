// Package rtc reads the battery-backed clock of a PC (MC146818 and successors).
package rtc

import (
	"errors"
	"time"

	"hardtack/driver"
)

const (
	portIndex = 0x70
	portData  = 0x71

	regSeconds = 0x00
	regMinutes = 0x02
	regHours   = 0x04
	regDay     = 0x07
	regMonth   = 0x08
	regYear    = 0x09
	regA       = 0x0a
	regB       = 0x0b

	aUpdating = 0x80 // the time is about to change
	b24Hours  = 0x02
	bBinary   = 0x04
	hourPM    = 0x80 // with 12 hours
)

type fields struct{ second, minute, hour, day, month, year, century uint8 }

// Read returns the clock's time, taken as UTC. century is the index of the
// century (FADT), 0 where there is none.
func Read(p driver.Platform, century uint8) (time.Time, error) {
	get := func(reg uint8) uint8 {
		p.Out8(portIndex, reg)
		return p.In8(portData)
	}
	b := get(regB)
	if b == 0xff {
		return time.Time{}, errors.New("no clock")
	}
	// The registers are read when no update is near, and again until two
	// readings agree: an update takes 2 ms at most, but we may have been away.
	read := func() (f fields, ok bool) {
		for range 100_000 {
			if get(regA)&aUpdating == 0 {
				ok = true
				break
			}
		}
		f = fields{get(regSeconds), get(regMinutes), get(regHours), get(regDay), get(regMonth), get(regYear), 0}
		if century != 0 && century < 128 {
			f.century = get(century)
		}
		return f, ok
	}
	last, ok := read()
	for range 10 {
		if !ok {
			break
		}
		f, again := read()
		if f == last {
			return f.time(b)
		}
		last, ok = f, again
	}
	return time.Time{}, errors.New("the clock does not stand still to be read")
}

func (f fields) time(b uint8) (time.Time, error) {
	pm := b&b24Hours == 0 && f.hour&hourPM != 0
	if b&b24Hours == 0 {
		f.hour &^= hourPM
	}
	if b&bBinary == 0 {
		for _, v := range []*uint8{&f.second, &f.minute, &f.hour, &f.day, &f.month, &f.year, &f.century} {
			if *v&15 > 9 || *v>>4 > 9 {
				return time.Time{}, errors.New("the clock holds no time")
			}
			*v = *v>>4*10 + *v&15
		}
	}
	if b&b24Hours == 0 {
		if f.hour == 0 || f.hour > 12 {
			return time.Time{}, errors.New("the clock holds no time")
		}
		f.hour %= 12
		if pm {
			f.hour += 12
		}
	}
	year := int(f.century)*100 + int(f.year)
	if f.century < 19 || f.century > 29 { // none, or not set
		if year = 2000 + int(f.year); f.year >= 70 {
			year = 1900 + int(f.year)
		}
	}
	if f.second > 60 || f.minute > 59 || f.hour > 23 || f.day == 0 || f.day > 31 || f.month == 0 || f.month > 12 || f.year > 99 {
		return time.Time{}, errors.New("the clock holds no time")
	}
	return time.Date(year, time.Month(f.month), int(f.day), int(f.hour), int(f.minute), int(f.second), 0, time.UTC), nil
}
