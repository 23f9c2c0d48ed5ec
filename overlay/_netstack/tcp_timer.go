package tcp

import (
	"io"
	"sync"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
)

// What a connection is made of, without memory for what it may never need: five timers had
// two closures each, settings were asked for one by one through an interface, and every
// connection had a queue of those that wait to be accepted.

// timerKind says what a timer of an endpoint does when it expires.
type timerKind uint8

const (
	timerKeepalive timerKind = iota
	timerResend
	timerReorder
	timerProbe
	timerCork
)

// callback is made when the timer runs for the first time.
func (t *timer) callback() func() {
	e, kind := t.e, t.kind
	return func() { timerHandler(e, func() tcpip.Error { return e.expired(kind) })() }
}

// expired is called when a timer may have expired.
//
// +checklocks:e.mu
func (e *Endpoint) expired(kind timerKind) tcpip.Error {
	switch kind {
	case timerKeepalive:
		return e.keepaliveTimerExpired()
	case timerResend:
		return e.snd.retransmitTimerExpired()
	case timerReorder:
		return e.snd.rc.reorderTimerExpired()
	case timerProbe:
		return e.snd.probeTimerExpired()
	default:
		return e.snd.corkTimerExpired()
	}
}

func (s *sender) initTimers() {
	s.resendTimer.init(s.ep, timerResend)
	s.reorderTimer.init(s.ep, timerReorder)
	s.probeTimer.init(s.ep, timerProbe)
	s.corkTimer.init(s.ep, timerCork)
}

// setDefaults gives a new sender what is set for the whole stack.
func (s *sender) setDefaults() {
	p := s.ep.protocol
	p.mu.RLock()
	s.minRTO, s.maxRTO, s.maxRetries = p.minRTO, p.maxRTO, p.maxRetries
	p.mu.RUnlock()
}

// setDefaults gives a new endpoint what is set for the whole stack.
func (e *Endpoint) setDefaults(p *protocol) {
	p.mu.RLock()
	e.ops.SetSendBufferSize(int64(p.sendBufferSize.Default), false /* notify */)
	e.ops.SetReceiveBufferSize(int64(p.recvBufferSize.Default), false /* notify */)
	e.cc = tcpip.CongestionControlOption(p.congestionControl)
	e.RcvAutoParams.Disabled = !p.moderateReceiveBuffer
	e.tcpLingerTimeout = p.lingerTimeout
	e.maxSynRetries = p.synRetries
	delay := p.delayEnabled
	p.mu.RUnlock()
	if delay {
		e.ops.SetDelayOption(true)
	}
}

// sack says whether selective acknowledgements are used, and how losses are found.
func (p *protocol) sack() (enabled bool, recovery tcpip.TCPRecovery) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.sackEnabled, p.recovery
}

func (p *protocol) cookiesAlways() bool {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.alwaysUseSynCookies
}

func (p *protocol) maxReceiveBufferSize() int {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.recvBufferSize.Max
}

// timeWait is how long connections wait.
func (p *protocol) timeWait() time.Duration {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.timeWaitTimeout
}

// rareStats count errors that nobody reads by connection; all share them.
type rareStats struct {
	ReceiveErrors ReceiveErrors
	ReadErrors    tcpip.ReadErrors
	WriteErrors   tcpip.WriteErrors
	SendErrors    SendErrors

	FailedConnectionAttempts tcpip.StatCounter
}

// control is the module of congestion control. It is made when a window first limits or
// something is lost: most connections never ask.
//
// +checklocks:s.ep.mu
func (s *sender) control() congestionControl {
	if s.cc == nil {
		if s.ep.cc == ccCubic {
			s.cc = newCubicCC(s)
		} else {
			s.cc = newRenoCC(s)
		}
	}
	return s.cc
}

// boundPeer is for which peer a port is reserved.
type boundPeer struct {
	addr tcpip.Address
	port uint16
}

func (b boundPeer) full() tcpip.FullAddress { return tcpip.FullAddress{Addr: b.addr, Port: b.port} }

// What onlyProto returns; nobody changes it.
var (
	onlyIPv4 = []tcpip.NetworkProtocolNumber{header.IPv4ProtocolNumber}
	onlyIPv6 = []tcpip.NetworkProtocolNumber{header.IPv6ProtocolNumber}
)

// onlyProto are the protocols of an endpoint that uses one.
func onlyProto(n tcpip.NetworkProtocolNumber) []tcpip.NetworkProtocolNumber {
	if n == header.IPv4ProtocolNumber {
		return onlyIPv4
	}
	return onlyIPv6
}

// limitedReaders are what data is read from users with.
var limitedReaders = sync.Pool{New: func() any { return new(io.LimitedReader) }}
