package tcp

// isCwndLimited reports whether the congestion window may have kept data back, when so many
// segments were outstanding. If not, an acknowledgement of them says nothing of a larger window
// (RFC 7661, tcp_is_cwnd_limited of Linux), and requests and answers need not compute one.
func (s *sender) isCwndLimited(outstanding int) bool { return 2*outstanding >= s.SndCwnd }
