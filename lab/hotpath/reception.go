package hotpath

import (
	"encoding/binary"
	"sync"
	"time"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/lab/hotpath/mediasocket"
)

// stream holds the counters of one incoming SSRC.
type stream struct {
	begun bool
	// next is the sequence number after the highest so far.
	next uint16
	// ended is set if the packet before next had the marker. whole is set if no packet of the current frame is missing.
	ended, whole bool

	packets, frames uint64
	// missing is the number of sequence numbers that have not arrived.
	missing int64
	// arrivals holds the times of the latest packets by sequence number, if times are measured.
	arrivals []arrival
}

// arrival is the arrival time of a packet; complete is set if the packet completed its frame.
type arrival struct {
	number   uint16
	complete bool
	at       time.Time
}

// take counts a packet and reports whether the packet completes a frame.
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

// reception counts the packets that a client receives, by their headers only. Its methods are safe for concurrent use.
type reception struct {
	mu sync.Mutex
	// media is the payload type that is counted; retransmissions and RTCP are not.
	media   uint8
	streams map[uint32]*stream
	// every is the interval in packets between packets whose times are measured; 0 measures none. timing is set while
	// times count.
	every uint16
	// counted is the socket that counts and drops media, or nil. countedBefore is the number of packets that the socket
	// had dropped before.
	counted       *mediasocket.Socket
	countedBefore int
	timing        bool
	packet, frame lab.Distribution
	// reporter reports the received packets to the server; nil if the receiver makes no reports.
	reporter *reporter
}

func newReception(every int) *reception {
	return &reception{streams: make(map[uint32]*stream), every: uint16(every)}
}

// expect sets the payload type of media.
func (r *reception) expect(payloadType uint8) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.media = payloadType
}

// kept is the number of arrivals remembered per stream, more than the packets between socket and decryption.
const kept = 4096

// observe counts media as it arrives at the socket, and reports whether the packet needs decryption.
func (r *reception) observe(packet []byte, at time.Time) bool {
	if mediasocket.IsControl(packet) {
		// Nothing in reports is measured here, and the server needs no responses to them.
		return false
	}
	r.reporter.received(packet, at)
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
	if r.counted != nil {
		s.packets++
		return false
	}
	complete := s.take(number, marker)
	if r.every == 0 || !marker && number%r.every != 0 {
		return false
	}
	s.arrivals[number%kept] = arrival{number, complete, at}
	return true
}

// decrypted reads the times from a decrypted packet.
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
	if len(packet) < mediasocket.RTPHeader {
		return nil, false
	}
	at := mediasocket.RTPHeader + 4*int(packet[0]&0x0f)
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

// received holds the counters of a client.
type received struct {
	streams         int
	packets, frames uint64
	// missing counts packets that never arrived. missed counts packets that had not arrived when due, if the client
	// sends NACKs; recovered counts the missed packets that arrived later.
	missing           int64
	missed, recovered uint64
}

// since returns the difference from an earlier time.
func (r received) since(before received) received {
	return received{
		streams: r.streams, packets: r.packets - before.packets, frames: r.frames - before.frames,
		missing: r.missing - before.missing,
		missed:  r.missed - before.missed, recovered: r.recovered - before.recovered,
	}
}

// sum adds up all streams.
func (r *reception) sum() received {
	r.mu.Lock()
	defer r.mu.Unlock()
	sum := received{streams: len(r.streams)}
	if r.counted != nil {
		sum.packets = uint64(mediasocket.Dropped(r.counted.UDPConn) - r.countedBefore)
	}
	for _, s := range r.streams {
		sum.packets += s.packets
		sum.frames += s.frames
		sum.missing += s.missing
	}
	return sum
}

// countOnly makes the socket count and drop media from now on, except for samples if the receiver makes reports; frames
// are no longer counted. It returns false if times are measured or if the system does not support the filter.
func (r *reception) countOnly(s *mediasocket.Socket) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := mediasocket.Dropped(s.UDPConn)
	switch {
	case r.every > 0:
		return false
	case r.reporter == nil:
		if s.CountOnly() != nil {
			return false
		}
	default:
		if s.Sample() != nil {
			return false
		}
		r.reporter.sample()
	}
	r.counted, r.countedBefore = s, before
	return true
}

// time starts or stops the recording of times.
func (r *reception) time(on bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.timing = on
}

// times returns the measured end-to-end times of packets and of complete frames.
func (r *reception) times() (packet, frame lab.Distribution) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.packet, r.frame
}
