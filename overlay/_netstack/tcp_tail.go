package tcp

import "gvisor.dev/gvisor/pkg/buffer"

// Short writes. netstack makes a segment of each write, and the send buffer counts its bytes
// only: a million bytes, written one by one to an end that reads nothing, took 700 MB. Here a
// write lengthens the last segment if no part of that was sent, as on Linux. And a
// send buffer has room for its size twice, with what segments take beside their data.

// segmentBytes is about what a segment takes beside its data: the segment, its packet, a view
// and the least chunk.
const segmentBytes = SegOverheadSize + 192

// sendUsed is what counts against the size of the send buffer.
//
// +checklocks:e.sndQueueInfo.sndQueueMu
func (e *Endpoint) sendUsed() int {
	data := e.sndQueueInfo.SndBufUsed
	return max(data, (data+int(e.sndSegments.Load())*segmentBytes)/2)
}

// sendRoom is how much may be written. Where there is none, room will be announced.
//
// +checklocks:e.sndQueueInfo.sndQueueMu
func (e *Endpoint) sendRoom(size int) int {
	room := size - e.sendUsed()
	if room <= 0 {
		e.sndFull = true
	}
	return room
}

// lengthenTail puts what was written into the last segment if that is short and was not
// sent, and returns the segment; nil if it cannot.
//
// +checklocks:e.mu
// +checklocks:e.sndQueueInfo.sndQueueMu
func (e *Endpoint) lengthenTail(buf *buffer.Buffer) *segment {
	tail := e.tailFor(int(buf.Size()))
	if tail == nil {
		return nil
	}
	whole, ok := buf.PullUp(0, int(buf.Size()))
	if !ok {
		return nil
	}
	tail.packet(e)
	tail.addView(whole.AsSlice(), e.snd.MaxPayloadSize)
	buf.Release()
	return tail
}

// tailFor returns the last segment if so many bytes may be added to it.
//
// +checklocks:e.mu
// +checklocks:e.sndQueueInfo.sndQueueMu
func (e *Endpoint) tailFor(n int) *segment {
	tail := e.snd.writeList.Back()
	if e.snd.writeNext == nil || tail == nil || e.snd.isAssignedSequenceNumber(tail) {
		return nil
	}
	has := tail.payloadSize()
	if has == 0 || has+n > e.snd.MaxPayloadSize {
		return nil
	}
	return tail
}

// addView adds data to a segment that is a packet, and whose data is less than most. The next
// view is as long as what there is, so that many short writes make few.
func (s *segment) addView(data []byte, most int) {
	has := s.payloadSize()
	v := buffer.NewView(max(len(data), min(has, most-has)))
	v.Write(data)
	s.pkt.Data().AppendView(v)
	s.dataMemSize = s.pkt.MemSize()
}
