package picture

import (
	"time"

	"github.com/pion/rtp"

	"github.com/volsfu/volsfu/pkg/switching"
)

// Received is a complete frame of a picture.
type Received struct {
	Timestamp uint32
	Key       bool
	// Decodable is set if the frame is a key frame, or if all frames since the last key frame are complete.
	Decodable bool
	// Bytes is the sum of the payloads.
	Bytes int
	// Complete is the arrival of the last packet.
	Complete time.Time
}

// maxWaiting bounds the packets that wait for a missing packet: two seconds at 4 Mbit/s. A larger number is a gap that
// is not repaired.
const maxWaiting = 1024

// Assembler joins the packets of one slot to frames, in the order of their sequence numbers. An Assembler takes
// explicit times and is owned by one goroutine.
type Assembler struct {
	mimeType string
	// deadline is the time for which a missing packet is awaited.
	deadline time.Duration

	begun bool
	next  uint16 // the number of the next packet of the open frame
	// waiting has the packets after a missing one, by number, and missing the time since which it is missing.
	waiting map[uint16]arrival
	missing time.Time
	// open is the present frame. opened is set if its first packet is known. chained is set if the frames before are
	// decodable.
	open    Received
	opened  bool
	chained bool
}

// arrival is a packet with its arrival.
type arrival struct {
	packet *rtp.Packet
	at     time.Time
}

// NewAssembler returns an assembler of a codec that awaits missing packets until the deadline.
func NewAssembler(mimeType string, deadline time.Duration) *Assembler {
	return &Assembler{mimeType: mimeType, deadline: deadline, waiting: make(map[uint16]arrival)}
}

// Push adds a packet and returns the frames that are complete with it. Late and repeated packets are ignored.
func (a *Assembler) Push(p *rtp.Packet, at time.Time) []Received {
	if !a.begun {
		a.begun, a.next = true, p.SequenceNumber
	}
	if int16(p.SequenceNumber-a.next) < 0 {
		return nil
	}
	a.waiting[p.SequenceNumber] = arrival{p, at}
	frames := a.drain(nil)
	if len(a.waiting) == 0 {
		a.missing = time.Time{}
		return frames
	}
	if a.missing.IsZero() {
		a.missing = at
	}
	if at.Sub(a.missing) >= a.deadline || len(a.waiting) > maxWaiting {
		a.skip()
		frames = a.drain(frames)
	}
	return frames
}

// skip gives up the missing packets before the first waiting one. The frames after them are not decodable before the
// next key frame.
func (a *Assembler) skip() {
	first, found := uint16(0), false
	for number := range a.waiting {
		if !found || int16(number-first) < 0 {
			first, found = number, true
		}
	}
	a.next, a.opened, a.chained, a.missing = first, false, false, time.Time{}
}

// drain takes the packets that are in order, and appends the complete frames.
func (a *Assembler) drain(frames []Received) []Received {
	for {
		next, ok := a.waiting[a.next]
		if !ok {
			return frames
		}
		delete(a.waiting, a.next)
		a.next++
		a.missing = time.Time{}
		if len(next.packet.Payload) == 0 {
			continue
		}
		a.take(&next)
		if next.packet.Marker {
			if a.opened {
				frames = append(frames, a.complete(next.at))
			}
			a.opened, a.open = true, Received{}
		}
	}
}

// take adds a packet to the open frame.
func (a *Assembler) take(next *arrival) {
	p := next.packet
	key := switching.KeyFrame(a.mimeType, p.Payload)
	if !a.opened && key {
		a.opened, a.open = true, Received{} // after a gap
	}
	if a.open.Bytes > 0 && p.Timestamp != a.open.Timestamp {
		a.open, a.chained = Received{}, false // the end of the frame before is missing
	}
	a.open.Timestamp = p.Timestamp
	a.open.Bytes += len(p.Payload)
	a.open.Key = a.open.Key || key
}

// complete returns the open frame.
func (a *Assembler) complete(at time.Time) Received {
	a.chained = a.chained || a.open.Key
	frame := a.open
	frame.Decodable, frame.Complete = a.chained, at
	return frame
}

// Broken reports whether frames are not decodable until the next key frame.
func (a *Assembler) Broken() bool { return a.begun && !a.chained }
