package switching

import (
	"encoding/binary"
	"time"

	"github.com/pion/interceptor"
	"github.com/pion/rtp"
)

// transportCCURI identifies the header extension that numbers all packets of a transport, including
// retransmissions.
const transportCCURI = "http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01"

// resendInterval is the time during which a packet is not resent again. resendInterval is shorter than any useful round
// trip of a NACK, and long enough to answer a duplicated request only once.
const resendInterval = 10 * time.Millisecond

// originalNumber is the size in bytes of the original sequence number at the start of a
// retransmission's payload (RFC 4588 section 4).
const originalNumber = 2

// resend answers a NACK for one number if a copy of the packet exists. Every retransmission is a
// separate packet on the retransmission stream (RFC 4588) with the next number of that stream. The
// SSRC of the media stream never carries a number twice.
func (s *stream) resend(sequence uint16) error {
	s.rtxMu.Lock()
	defer s.rtxMu.Unlock()
	// Two bytes are left free before the payload for the original number.
	h, body, ok := s.copyOf(sequence)
	if !ok {
		return nil
	}
	binary.BigEndian.PutUint16(body, sequence)
	h.SSRC, h.PayloadType, h.SequenceNumber = s.rtxSSRC, s.rtxType, s.rtxNumber
	s.rtxNumber++
	if s.transportCC != 0 && h.GetExtension(s.transportCC) != nil {
		// The extension contains the transport-wide number of the media packet. The interceptor
		// below assigns a new number to the retransmission.
		if err := h.DelExtension(s.transportCC); err != nil {
			return err
		}
		h.Extension = len(h.Extensions) > 0
	}
	_, err := s.writer.Write(&h, body, interceptor.Attributes{})
	return err
}

// copyOf returns the header and the payload of a packet as it was sent, without padding, in the
// buffer for retransmissions.
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
		// Applications older than Header.PaddingSize write the padding at the end of the payload.
		body = body[:len(body)-min(int(body[len(body)-1]), len(body))]
	}
	h.Padding, h.PaddingSize = false, 0
	s.rtxBuffer = append(s.rtxBuffer, 0, 0)
	copy(s.rtxBuffer[n+originalNumber:n+originalNumber+len(body)], body)
	return h, s.rtxBuffer[n : n+originalNumber+len(body)], true
}
