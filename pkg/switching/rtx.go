package switching

import (
	"encoding/binary"
	"time"

	"github.com/pion/interceptor"
	"github.com/pion/rtp"
)

// transportCCURI names the header extension that numbers the packets of a whole transport, retransmissions included.
const transportCCURI = "http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01"

// resendInterval is the time in which a packet is not resent again: shorter than any useful round trip of a NACK, long enough to
// answer one request that arrives twice once.
const resendInterval = 10 * time.Millisecond

// originalNumber is the size of the number that begins the payload of a retransmission (RFC 4588 section 4), in bytes.
const originalNumber = 2

// resend answers a NACK for one number, if there is a copy of the packet. Every retransmission is a packet of its own on the
// retransmission stream (RFC 4588), with the next number there: the media stream's SSRC never carries a number twice.
func (s *stream) resend(sequence uint16) error {
	s.rtxMu.Lock()
	defer s.rtxMu.Unlock()
	// Two bytes are left free in front of the payload, for the original number.
	h, body, ok := s.copyOf(sequence)
	if !ok {
		return nil
	}
	binary.BigEndian.PutUint16(body, sequence)
	h.SSRC, h.PayloadType, h.SequenceNumber = s.rtxSSRC, s.rtxType, s.rtxNumber
	s.rtxNumber++
	if s.transportCC != 0 && h.GetExtension(s.transportCC) != nil {
		// The number that the media packet had in the transport. What numbers packets below gives this one its own.
		if err := h.DelExtension(s.transportCC); err != nil {
			return err
		}
		h.Extension = len(h.Extensions) > 0
	}
	_, err := s.writer.Write(&h, body, interceptor.Attributes{})
	return err
}

// copyOf returns header and payload of a packet as it was sent, padding removed, in the buffer for retransmissions.
func (s *stream) copyOf(sequence uint16) (h rtp.Header, body []byte, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.switcher == nil {
		return h, nil, false
	}
	p := s.copies.get(s.switcher.extended(sequence))
	now := s.options.now()
	if p == nil || now.Sub(p.resent) < resendInterval {
		return h, nil, false
	}
	p.resent = now
	s.rtxBuffer = append(s.rtxBuffer[:0], p.data[:p.size]...)
	n, err := h.Unmarshal(s.rtxBuffer)
	if err != nil {
		return h, nil, false
	}
	body = s.rtxBuffer[n:]
	if h.Padding && len(body) > 0 {
		// Applications that predate Header.PaddingSize write the padding as the end of the payload.
		body = body[:len(body)-min(int(body[len(body)-1]), len(body))]
	}
	h.Padding, h.PaddingSize = false, 0
	s.rtxBuffer = append(s.rtxBuffer, 0, 0)
	copy(s.rtxBuffer[n+originalNumber:n+originalNumber+len(body)], body)
	return h, s.rtxBuffer[n : n+originalNumber+len(body)], true
}
