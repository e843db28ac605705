package hotpath

import (
	"encoding/binary"
	"sync"
	"time"

	"github.com/volsfu/volsfu/lab"
)

// rtpHeader is the size of an RTP header without extensions (RFC 3550 section 5.1).
const rtpHeader = 12

// stream is what was counted of one incoming SSRC.
type stream struct {
	begun bool
	// next is the sequence number after the highest so far.
	next uint16
	// ended says that the packet before next had the marker, whole that nothing is missing of the present frame.
	ended, whole bool

	packets, frames uint64
	// missing is how many sequence numbers have not come.
	missing int64
	// arrivals are the times of the latest packets by their sequence numbers, where times are taken.
	arrivals []arrival
}

// arrival is when a packet came; complete says that its frame was then whole.
type arrival struct {
	number   uint16
	complete bool
	at       time.Time
}

// take counts a packet. It tells whether a frame is whole with it.
func (s *stream) take(number uint16, marker bool) bool {
	s.packets++
	if !s.begun {
		s.begun, s.next, s.ended = true, number, true
	}
	switch ahead := int16(number - s.next); {
	case ahead < 0:
		s.missing--
		return false
	case ahead > 0:
		s.missing += int64(ahead)
		s.whole = false
	case s.ended:
		s.whole = true
	}
	s.next, s.ended = number+1, marker
	if marker && s.whole {
		s.frames++
		return true
	}
	return false
}

// reception counts what a client receives, from headers alone. Its methods are safe for concurrent use.
type reception struct {
	mu sync.Mutex
	// media is the payload type that is counted; retransmissions and RTCP are not.
	media   uint8
	streams map[uint32]*stream
	// every is how many packets there are for one whose times are taken; 0 takes none. timing says that they count now.
	every uint16
	// counted is the socket that counts media and lets none through, nil where it does not; countedBefore is what it had dropped before.
	counted       *socket
	countedBefore int
	timing        bool
	packet, frame lab.Distribution
}

func newReception(every int) *reception {
	return &reception{streams: make(map[uint32]*stream), every: uint16(every)}
}

// expect says which payload type media has.
func (r *reception) expect(payloadType uint8) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.media = payloadType
}

// kept is how many arrivals are remembered per stream: more than are under way between socket and decryption.
const kept = 4096

// observe counts media as it comes from the socket, and tells whether it is to be decrypted.
func (r *reception) observe(packet []byte, at time.Time) bool {
	if isControl(packet) {
		// Reports tell nothing that is measured here, and answers to them are nothing that a server needs.
		return false
	}
	number, ssrc := binary.BigEndian.Uint16(packet[2:]), binary.BigEndian.Uint32(packet[8:])
	marker := packet[1]&0x80 != 0
	r.mu.Lock()
	defer r.mu.Unlock()
	if packet[1]&0x7f != r.media {
		return false
	}
	s := r.streams[ssrc]
	if s == nil {
		s = &stream{}
		if r.every > 0 {
			s.arrivals = make([]arrival, kept)
		}
		r.streams[ssrc] = s
	}
	complete := s.take(number, marker)
	if r.every == 0 || !marker && number%r.every != 0 {
		return false
	}
	s.arrivals[number%kept] = arrival{number, complete, at}
	return true
}

// decrypted takes the times from a packet that was decrypted.
func (r *reception) decrypted(packet []byte) {
	payload, ok := payloadOf(packet)
	if !ok {
		return
	}
	sent, begun, ok := readStamp(payload)
	if !ok {
		return
	}
	number, ssrc := binary.BigEndian.Uint16(packet[2:]), binary.BigEndian.Uint32(packet[8:])
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.streams[ssrc]
	if s == nil {
		return
	}
	a := s.arrivals[number%kept]
	if a.number != number || a.at.IsZero() || !r.timing {
		return
	}
	if number%r.every == 0 {
		r.packet.Add(a.at.Sub(sent))
	}
	if a.complete {
		r.frame.Add(a.at.Sub(begun))
	}
}

// payloadOf skips the header of an RTP packet with its contributing sources and its extension (RFC 3550 section 5.3.1).
func payloadOf(packet []byte) ([]byte, bool) {
	if len(packet) < rtpHeader {
		return nil, false
	}
	at := rtpHeader + 4*int(packet[0]&0x0f)
	if packet[0]&0x10 != 0 {
		if len(packet) < at+4 {
			return nil, false
		}
		at += 4 + 4*int(binary.BigEndian.Uint16(packet[at+2:]))
	}
	if len(packet) < at {
		return nil, false
	}
	return packet[at:], true
}

// received is what a client has received.
type received struct {
	streams         int
	packets, frames uint64
	// missing is what has not come at all; missed is what had not come when it was due, where the client asks for it, and recovered what of it came then.
	missing           int64
	missed, recovered uint64
}

// since is what came after an earlier time.
func (r received) since(before received) received {
	return received{
		streams: r.streams, packets: r.packets - before.packets, frames: r.frames - before.frames, missing: r.missing - before.missing,
		missed: r.missed - before.missed, recovered: r.recovered - before.recovered,
	}
}

// sum adds up all streams.
func (r *reception) sum() received {
	r.mu.Lock()
	defer r.mu.Unlock()
	sum := received{streams: len(r.streams)}
	if r.counted != nil {
		sum.packets = uint64(dropped(r.counted.UDPConn) - r.countedBefore)
	}
	for _, s := range r.streams {
		sum.packets += s.packets
		sum.frames += s.frames
		sum.missing += s.missing
	}
	return sum
}

// countOnly has the socket count media from now on and let none through: of frames nothing is known any more. It returns false where times are taken, or
// where the system cannot do it.
func (r *reception) countOnly(s *socket) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := dropped(s.UDPConn)
	if r.every > 0 || countMedia(s) != nil {
		return false
	}
	s.counting.Store(true)
	r.counted, r.countedBefore = s, before
	return true
}

// time begins or ends to count times.
func (r *reception) time(on bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.timing = on
}

// times are the end-to-end times of packets and of whole frames that were taken.
func (r *reception) times() (packet, frame lab.Distribution) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.packet, r.frame
}
