package stream

import (
	"time"

	"github.com/pion/rtp"

	"github.com/volsfu/volsfu/internal/congestion"
	"github.com/volsfu/volsfu/internal/congestion/sender"
	"github.com/volsfu/volsfu/internal/feedback"
)

// leave sends a packet of a frame, unless the frame had waited longer than the budget before its first packet.
func (s *Sender) leave(h held, now time.Time) {
	f := h.frame
	if h.index == 0 && f.ordinal < s.frames && s.config.Budget > 0 && now.Sub(f.queued) > s.config.Budget {
		f.departure.Dropped = true
		s.departed = append(s.departed, f.departure)
	}
	if f.departure.Dropped {
		return
	}
	last := h.index == f.departure.Packets-1
	if h.index == 0 {
		f.departure.First = now
		s.control.Begin(&s.flow)
	}
	if last {
		f.departure.Last = now
		s.departed = append(s.departed, f.departure)
	}
	body := f.packet(h.index)
	header := rtp.Header{
		Version: 2, Marker: last, PayloadType: s.config.Wire.PayloadType, SequenceNumber: s.sequence,
		Timestamp: f.timestamp, SSRC: s.config.Wire.SSRC,
	}
	s.history.Put(feedback.Sent{
		Sequence: s.sequence, Timestamp: f.timestamp, Marker: last, PayloadType: header.PayloadType, Payload: body,
		At: now,
	})
	s.sequence++
	s.padded = 0
	s.depart(header, body, feedback.Media, now)
}

// leaveOut drops the frames that have waited longer than the budget and have not begun. It is called when the next
// frame arrives, which bounds the queue.
func (s *Sender) leaveOut(now time.Time) {
	found := false
	for i := range s.flow.Len() {
		h := s.flow.At(i)
		if f := h.frame; h.index == 0 && s.config.Budget > 0 && now.Sub(f.queued) > s.config.Budget {
			f.departure.Dropped, found = true, true
			s.departed = append(s.departed, f.departure)
		}
	}
	if found {
		s.control.Filter(&s.flow, func(h held) bool { return !h.frame.departure.Dropped })
	}
}

// depart assigns the transport-wide number of a packet, if packets have one, and accounts for the packet.
func (s *Sender) depart(header rtp.Header, body []byte, kind feedback.PacketKind, now time.Time) {
	size := congestion.PacketOverhead + len(body)
	number := s.control.Sent(header.SSRC, header.SequenceNumber, size, kind, now)
	if s.config.Wire.Extension != 0 && !s.config.Wire.ByStream {
		// The extension identifier was negotiated. A packet that could not be numbered would be sent without a number.
		_ = feedback.SetTransportSequence(&header, s.config.Wire.Extension, uint16(number))
	}
	s.control.Spend(size)
	if kind == feedback.Retransmission {
		s.control.SpendRepair(size)
	}
	s.ready = append(s.ready, Packet{Header: header, Payload: body, ECN: s.control.Stats().ECN})
}

// repeat retransmits a packet (RFC 4588). It returns false if the packet is no longer in the history or the receiver
// does not support retransmissions.
func (s *Sender) repeat(sequence uint16, kind feedback.PacketKind, now time.Time) bool {
	sent, ok := s.history.Get(sequence)
	if !ok || s.repeats.SSRC == 0 || s.repeats.PayloadType == 0 {
		return false
	}
	header := rtp.Header{Version: 2, Marker: sent.Marker, SequenceNumber: sent.Sequence, Timestamp: sent.Timestamp}
	// The original sequence number has two bytes (RFC 4588 section 4).
	body, err := s.repeats.Pack(make([]byte, len(sent.Payload)+2), &header, sent.Payload)
	if err != nil {
		return false
	}
	s.depart(header, body, kind, now)
	return true
}

// pad sends the padding that the active probe requests: retransmissions of the latest packets, which may also repair
// undetected losses.
func (s *Sender) pad(now time.Time) {
	s.control.Pad(func() bool {
		s.padded++
		if s.padded <= sender.MaxPadding && s.repeat(s.sequence-s.padded, feedback.Probe, now) {
			return true
		}
		s.padded = 0
		return false
	})
}
