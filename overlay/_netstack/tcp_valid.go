package tcp

import "time"

// pawsIdle is how long a timestamp stays worth a comparison (RFC 7323, 5.5).
const pawsIdle = 24 * 24 * time.Hour

// stale reports whether a segment is older than one that came before, by its timestamp
// (PAWS, RFC 7323, 5.3). A bare acknowledgement in its place may have been overtaken; it
// tells what it tells.
//
// +checklocks:r.ep.mu
func (r *receiver) stale(s *segment) bool {
	e := r.ep
	if !e.SendTSOk || !s.parsedOptions.TS || int32(s.parsedOptions.TSVal-e.recentTimestamp()) >= 0 {
		return false
	}
	if s.logicalLen() == 0 && s.sequenceNumber == r.RcvNxt && s.ackNumber == e.snd.SndUna {
		return false
	}
	return s.rcvdTime.Sub(r.lastRcvdAckTime) < pawsIdle
}

// admit reports whether a segment acknowledges what can be (RFC 5961, 5.2): neither what
// was never sent, nor what is older than any window that the peer had. Otherwise somebody
// who guesses only the receiver's numbers could add data. It also keeps the segment's
// timestamp, which an acknowledgement of it must carry.
//
// +checklocks:r.ep.mu
func (r *receiver) admit(s *segment) bool {
	snd := r.ep.snd
	if snd.SndNxt.LessThan(s.ackNumber) {
		return false
	}
	snd.maxWnd = max(snd.maxWnd, snd.SndWnd, s.window)
	if s.ackNumber.LessThan(snd.SndUna.Add(-snd.maxWnd)) {
		if r.ep.allowOutOfWindowAck() {
			snd.sendAck()
		}
		return false
	}
	if s.parsedOptions.TS {
		r.ep.updateRecentTimestamp(s.parsedOptions.TSVal, snd.MaxSentAck, s.sequenceNumber)
	}
	return true
}

// Negotiated tells which options both sides of a connection know.
func (e *Endpoint) Negotiated() (timestamps, sack, scale bool) {
	e.LockUser()
	defer e.UnlockUser()
	if e.snd == nil || e.rcv == nil {
		return e.SendTSOk, e.SACKPermitted, false
	}
	return e.SendTSOk, e.SACKPermitted, e.rcv.RcvWndScale > 0 || e.snd.SndWndScale > 0
}

// sackSpace is what the blocks of a selective acknowledgement may take.
const sackSpace = 28
