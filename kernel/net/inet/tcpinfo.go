package inet

import (
	"math"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"

	"hardtack/abi/linux"
	"hardtack/kernel/net/sock"
)

// tcpInfo is struct tcp_info.
type tcpInfo [linux.SizeofTCPInfo]byte

func (b *tcpInfo) u32(off int, v uint32) { sock.PutInt(b[off:], int32(v)) }
func (b *tcpInfo) u64(off int, v uint64) { sock.PutUint64(b[off:], v) }

// Offsets of struct tcp_info.
const (
	infoState, infoCaState, infoOptions, infoScale = 0, 1, 5, 6
	infoRTO, infoSndMSS, infoRcvMSS                = 8, 16, 20
	infoUnacked, infoSacked                        = 24, 28
	infoPMTU, infoRcvSsthresh, infoRTT, infoRTTVar = 60, 64, 68, 72
	infoSsthresh, infoCwnd, infoAdvMSS             = 76, 80, 84
	infoReordering, infoRcvSpace                   = 88, 96
	infoPacing, infoMaxPacing                      = 104, 112
	infoBytesAcked, infoBytesReceived              = 120, 128
	infoSegsOut, infoSegsIn                        = 136, 140
	infoMinRTT, infoDataSegsIn, infoDataSegsOut    = 148, 152, 156
	infoBytesSent, infoSndWnd                      = 200, 228
)

// What Linux shows of a new connection.
const (
	firstRTO        = time.Second
	loopbackRTO     = 204 * time.Millisecond
	firstCwnd       = 10
	reordering      = 3
	firstRcvMSS     = 536
	scaleOfLoopback = 7
)

// info is TCP_INFO.
func (s *TCP) info(val []byte) int {
	var b tcpInfo
	state := s.linuxState()
	b[infoState] = byte(state)
	b.u32(infoReordering, reordering)
	b.u32(infoCwnd, firstCwnd)
	b.u64(infoPacing, math.MaxUint64)
	b.u64(infoMaxPacing, s.Opt.PacingRate())
	if state == linux.TCP_LISTEN {
		s.mu.Lock()
		b.u32(infoUnacked, uint32(len(s.pending)))
		b.u32(infoSacked, uint32(s.backlog))
		s.mu.Unlock()
		return copy(val, b[:])
	}
	b.u32(infoRTO, uint32(firstRTO/time.Microsecond))
	b.u32(infoSndMSS, header.TCPDefaultMSS)
	b.u32(infoSsthresh, math.MaxInt32)
	b.u32(infoMinRTT, math.MaxUint32)
	if x := s.far.Load(); x != nil {
		s.localInfo(&b, x)
	} else if p := s.ep.Load(); p != nil && s.state.Load() != stFresh {
		s.remoteInfo(&b, p)
	}
	return copy(val, b[:])
}

// localInfo describes a connection within the machine, whose bytes do not travel: its
// round-trip time is less than what the clock of TCP can tell.
func (s *TCP) localInfo(b *tcpInfo, x *TCP) {
	b[infoOptions] = linux.TCPI_OPT_TIMESTAMPS | linux.TCPI_OPT_SACK | linux.TCPI_OPT_WSCALE
	b[infoScale] = scaleOfLoopback<<4 | scaleOfLoopback
	b.u32(infoRTO, uint32(loopbackRTO/time.Microsecond))
	b.u32(infoSndMSS, loopbackMSS)
	b.u32(infoRcvMSS, firstRcvMSS)
	b.u32(infoAdvMSS, loopbackMSS)
	b.u32(infoPMTU, loopbackPMTU)
	b.u32(infoRTT, 1)
	b.u32(infoRTTVar, 1)
	b.u32(infoMinRTT, 1)
	b.u32(infoRcvSpace, loopbackMSS)
	b.u32(infoRcvSsthresh, loopbackMSS)
	sent, _ := x.in.Passed()
	got, _ := s.in.Passed()
	segsOut, segsIn := (sent+loopbackMSS-1)/loopbackMSS, (got+loopbackMSS-1)/loopbackMSS
	b.u64(infoBytesAcked, sent-min(sent, uint64(x.unacknowledged())))
	b.u64(infoBytesSent, sent)
	b.u64(infoBytesReceived, got)
	b.u32(infoDataSegsOut, uint32(segsOut))
	b.u32(infoDataSegsIn, uint32(segsIn))
	b.u32(infoSegsOut, uint32(segsOut+segsIn+1))
	b.u32(infoSegsIn, uint32(segsOut+segsIn+1))
	b.u32(infoSndWnd, loopbackMTU)
}

// loopbackPMTU is what TCP takes lo's MTU for: the most that a packet of IPv4 can be.
const loopbackPMTU = 65535

// optionBits are the options that both sides of a connection know. Without the changes to
// netstack it does not tell.
func (p *netPoint) optionBits() (bits byte) {
	n, ok := p.Endpoint.(interface {
		Negotiated() (timestamps, sack, scale bool)
	})
	if !ok {
		return linux.TCPI_OPT_TIMESTAMPS | linux.TCPI_OPT_SACK | linux.TCPI_OPT_WSCALE
	}
	timestamps, sack, scale := n.Negotiated()
	if timestamps {
		bits |= linux.TCPI_OPT_TIMESTAMPS
	}
	if sack {
		bits |= linux.TCPI_OPT_SACK
	}
	if scale {
		bits |= linux.TCPI_OPT_WSCALE
	}
	return bits
}

// remoteInfo describes a connection of netstack.
func (s *TCP) remoteInfo(b *tcpInfo, p *netPoint) {
	var o tcpip.TCPInfoOption
	if p.GetSockOpt(&o) != nil {
		return
	}
	mss := header.TCPDefaultMSS
	if v, err := p.GetSockOptInt(tcpip.MaxSegOption); err == nil && v > 0 {
		mss = v
	}
	b[infoOptions] = p.optionBits()
	b[infoCaState] = byte(o.CcState)
	b.u32(infoSndMSS, uint32(mss))
	b.u32(infoRcvMSS, uint32(mss))
	b.u32(infoAdvMSS, uint32(mss))
	b.u32(infoPMTU, uint32(s.pathMTU()))
	b.u32(infoRTO, uint32(o.RTO/time.Microsecond))
	b.u32(infoRTT, uint32(o.RTT/time.Microsecond))
	b.u32(infoRTTVar, uint32(o.RTTVar/time.Microsecond))
	b.u32(infoSsthresh, o.SndSsthresh)
	b.u32(infoCwnd, o.SndCwnd)
	b.u32(infoRcvSpace, firstReceiveBuffer/2)
}
