// Package serial drives a 16550A serial port.
//
// Input: the bottom half wakes a goroutine, which empties the receive FIFO and
// hands the bytes to the receiver. The receiver may block: then the FIFO fills
// and the sender waits. Meanwhile the receive interrupt is off, since as long as
// it is due the port shows no other. Output is
// written by the caller, up to sixteen bytes for each look at the status, since
// under emulation the FIFO is empty again at once and each access costs far more
// than the byte; only who finds the transmitter busy sleeps until its interrupt.
//
// Lock order: mu is a leaf; the receiver is called without it.
package serial

import (
	"errors"
	"sync"

	"hardtack/driver"
)

// The first port of a PC.
const (
	COM1    = 0x3f8
	COM1IRQ = 4
)

// Registers, from the base on, and their bits.
const (
	regData      = 0 // and the divisor's lower half
	regIntEnable = 1 // and the divisor's upper half
	regIntCause  = 2 // read
	regFIFO      = 2 // written
	regLine      = 3
	regModem     = 4
	regStatus    = 5
	regModemIn   = 6
	regScratch   = 7

	intReceive  = 1 << 0
	intTransmit = 1 << 1

	causeNone     = 1
	causeMask     = 0x0e
	causeModem    = 0x00
	causeTransmit = 0x02
	causeStatus   = 0x06

	fifoEnable = 0x01 // and interrupt at the first byte received

	lineDivisor = 0x80
	line8N1     = 0x03
	modemOn     = 0x0b // DTR, RTS, and OUT2, which lets interrupts through

	statusData  = 1 << 0
	statusEmpty = 1 << 5 // the transmit FIFO has room for all its bytes

	fifoSize = 16
)

// Port is a serial port.
type Port struct {
	p       driver.Platform // immutable
	base    uint16          // immutable
	receive func([]byte)    // immutable
	input   chan struct{}   // wakes the receiving goroutine

	mu     sync.Mutex
	room   sync.Cond // of mu; the transmitter is empty, perhaps
	enable uint8     // guarded by mu; the interrupts that are on
	after  []func()  // guarded by mu; AfterInput's
}

// Open sets a port up for 115200 baud, 8N1, and routes its interrupt. What has
// been received already is kept. receive is called with what comes in, by one
// goroutine at a time; it must not keep the bytes.
func Open(p driver.Platform, base uint16, irq uint32, receive func([]byte)) (*Port, error) {
	s := &Port{p: p, base: base, receive: receive, input: make(chan struct{}, 1)}
	s.room.L = &s.mu
	s.out(regScratch, 0x5a)
	if s.in(regScratch) != 0x5a {
		return nil, errors.New("no serial port")
	}
	s.out(regIntEnable, 0)
	s.out(regLine, lineDivisor|line8N1)
	s.out(regData, 1)
	s.out(regIntEnable, 0)
	s.out(regLine, line8N1)
	s.out(regFIFO, fifoEnable)
	s.out(regModem, modemOn)
	if err := p.Interrupt(irq, false, false, s.interrupt); err != nil {
		return nil, err
	}
	s.set(intReceive, true)
	go s.serve()
	return s, nil
}

func (s *Port) in(reg uint16) uint8     { return s.p.In8(s.base + reg) }
func (s *Port) out(reg uint16, v uint8) { s.p.Out8(s.base+reg, v) }

// set switches interrupts on or off. What is due already interrupts as it is
// switched on.
func (s *Port) set(interrupt uint8, on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if on {
		s.enable |= interrupt
	} else {
		s.enable &^= interrupt
	}
	s.out(regIntEnable, s.enable)
}

// interrupt is the bottom half. The line is edge-triggered: it has to fall
// before it can call again, so all causes are dealt with.
func (s *Port) interrupt() {
	for {
		cause := s.in(regIntCause)
		if cause&causeNone != 0 {
			return
		}
		switch cause & causeMask {
		case causeTransmit:
			s.set(intTransmit, false)
			s.room.Broadcast()
		case causeModem:
			s.in(regModemIn)
		case causeStatus:
			s.in(regStatus)
		default:
			s.set(intReceive, false)
			s.wake()
		}
	}
}

func (s *Port) wake() {
	select {
	case s.input <- struct{}{}:
	default:
	}
}

// serve is the receiving goroutine.
func (s *Port) serve() {
	buf := make([]byte, 256)
	for range s.input {
		s.mu.Lock()
		after := s.after
		s.after = nil
		s.mu.Unlock()
		for s.in(regStatus)&statusData != 0 {
			n := 0
			for n < len(buf) && s.in(regStatus)&statusData != 0 {
				buf[n] = s.in(regData)
				n++
			}
			s.receive(buf[:n])
		}
		for _, f := range after {
			f()
		}
		s.set(intReceive, true)
	}
}

// AfterInput calls f in the receiver's goroutine, once the receiver has had all
// that is in the port now. It does not wait for that.
func (s *Port) AfterInput(f func()) {
	s.mu.Lock()
	s.after = append(s.after, f)
	s.mu.Unlock()
	s.wake()
}

// Write sends bytes; it waits while the other side does not take them.
func (s *Port) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for rest := b; len(rest) > 0; {
		if s.in(regStatus)&statusEmpty == 0 {
			// Switching the interrupt on while the transmitter is empty
			// interrupts at once, so nothing is missed.
			s.enable |= intTransmit
			s.out(regIntEnable, s.enable)
			s.room.Wait()
			continue
		}
		n := min(len(rest), fifoSize)
		for _, c := range rest[:n] {
			s.out(regData, c)
		}
		rest = rest[n:]
	}
	return len(b), nil
}
