package tcp

import "time"

// minProbeTimeout is added to two round trips before a probe is sent, as Linux adds
// TCP_TIMEOUT_MIN, its two jiffies: a peer that is a little late is not sent data again.
const minProbeTimeout = 8 * time.Millisecond

// tailToProbe is what a loss probe sends of the last segment that was sent. That may be a train,
// which the device cuts into segments: then only the last of those says whether the tail arrived
// (RFC 8985, 7.3), and it becomes a segment of its own.
//
// +checklocks:s.ep.mu
func (s *sender) tailToProbe(seg *segment) *segment {
	size, most := seg.payloadSize(), s.MaxPayloadSize
	if size <= most {
		return seg
	}
	s.splitSeg(seg, (size-1)/most*most)
	return seg.Next()
}
