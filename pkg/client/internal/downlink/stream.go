package downlink

import (
	"time"

	"github.com/pion/rtp"

	"github.com/volsfu/volsfu/internal/feedback"
	"github.com/volsfu/volsfu/pkg/client/internal/frametrace"
	"github.com/volsfu/volsfu/pkg/client/internal/hostclock"
	"github.com/volsfu/volsfu/pkg/payload"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/pkg/vr2gather"
)

// stream is one received RTP stream, which carries the packets of one of the server's slots.
type stream struct {
	kind volumetric.Kind
	// ssrc is the SSRC of the media, retransmission the SSRC of its retransmissions, 0 for none.
	ssrc, retransmission uint32

	// generation, track and publication are the present assignment. track is nil while the slot is idle.
	generation  uint32
	track       *volumetric.TrackRef
	publication volumetric.Publication
	// framed is set if the publication uses payload v1.
	framed bool
	tile   *tile
	// former is the highest sequence number before the packets of the assignment can arrive, which is not before opens.
	// The numbers of a slot continue, and packets up to this one belong to former assignments.
	former int64
	opens  time.Time
	// before holds the counts of nacks at the time of the assignment. delivered is the time of the last frame or packet
	// of the assignment, also if another connection had delivered the frame before.
	before    feedback.NACKStats
	delivered time.Time
	// encrypted is set if the publication's frames must be decrypted. refusal is the reason why none can be.
	encrypted bool
	refusal   error
	opening   *opening
	tiles     *tiles

	unwrapper  feedback.Unwrapper
	continuity continuity
	nacks      *feedback.NACKGenerator
	repair     feedback.FrameRepair
	frames     *payload.Reassembler
	// reception, lateness and captures depend on the clock rate. They are nil before the first assignment.
	reception *feedback.Reception
	lateness  *feedback.Lateness
	captures  *feedback.CaptureClock
	header    rtp.Header
	// stamps are the stamps of the first packets of incomplete frames.
	stamps frametrace.KernelStamps
}

func newStream(
	kind volumetric.Kind, ssrc, retransmission uint32, config Config, opening *opening, tiles *tiles,
) *stream {
	frames := payload.DefaultConfig()
	nack := feedback.DefaultConfig().NACK
	if config.Deadline > 0 {
		frames.Deadline = config.Deadline
		nack.Deadline, nack.LongDeadline = config.Deadline, config.Deadline
	}
	if config.FrameBytes > 0 {
		frames.MaxFrameBytes = config.FrameBytes
		frames.MaxBytes = max(frames.MaxBytes, 2*config.FrameBytes)
	}
	return &stream{
		kind:           kind,
		ssrc:           ssrc,
		retransmission: retransmission,
		opening:        opening,
		tiles:          tiles,
		nacks:          feedback.NewNACKGenerator(nack),
		frames:         payload.NewReassembler(frames),
	}
}

// assign begins an assignment. track is nil for none. Packets before the time opens belong to former assignments.
func (s *stream) assign(
	generation uint32, track *volumetric.TrackRef, publication volumetric.Publication, t *tile, opens time.Time,
) {
	if s.leave(); s.tile != nil {
		s.tile.ledger.end()
	}
	s.generation, s.track, s.publication, s.tile, s.delivered = generation, track, publication, t, time.Time{}
	s.former, s.opens = s.unwrapper.Highest(), opens
	s.encrypted, s.refusal = s.opening.opener.CheckPublication(&publication)
	s.framed = track != nil && publication.Codec.Is(volumetric.MIMEVolumetric)
	s.frames.Reset()
	s.nacks.Release()
	if t == nil {
		return
	}
	s.before = s.nacks.Stats()
	s.captures = feedback.NewCaptureClock(publication.Codec.ClockRate)
	if s.reception == nil {
		s.reception = feedback.NewReception(publication.Codec.ClockRate)
		s.lateness = feedback.NewLateness(publication.Codec.ClockRate)
	}
}

// forever is later than every deadline.
var forever = time.Unix(1<<40, 0)

// leave stops receiving the tile, if there is one: the slot has another assignment, or the connection has ended. Frames
// in transit are counted at their deadlines.
func (s *stream) leave() {
	t := s.tile
	if t == nil {
		return
	}
	for _, given := range s.frames.Expire(forever, nil) {
		if number := t.extend(given.Number); !t.delivered.has(number) {
			t.ledger.incomplete(number, given.First)
		}
	}
	t.nacks = s.requests()
	s.tiles.leave(t)
}

// Frame is one complete frame of a tile. client.Frame describes the fields.
type Frame struct {
	Track           volumetric.TrackRef
	Number          int64
	Codec           volumetric.FourCC
	Capture         time.Time
	Data            []byte
	Whole           []byte
	First, Complete time.Time
}

// Packet is one packet of a track that does not use payload v1. client.Packet describes the fields.
type Packet struct {
	Track volumetric.TrackRef
	Codec volumetric.Codec
	rtp.Packet
	Capture time.Time
	Arrival time.Time
}

// Arrival is the result of one packet: a complete frame, the packet itself if the track does not use payload v1, a
// refusal of either, or nothing.
type Arrival struct {
	Frame  *Frame
	Packet *Packet
	// Refused is set if the packet is, or completes, data that was not decrypted. Frame and Packet are then nil.
	Refused *Refusal
	// Times are the arrival times of the frame.
	Times frametrace.Arrived
	tile  *tile
}

// Delivered counts the frame or packet. taken reports whether the program's channel had room.
func (a Arrival) Delivered(taken bool) {
	switch {
	case a.tile == nil:
	case !taken:
		a.tile.ledger.overflowed()
	case a.Frame != nil:
		a.tile.ledger.complete()
	}
}

// take processes one packet of the media stream (original is set) or a packet from the retransmission stream. now is a
// time of the system's clock.
func (s *stream) take(header *rtp.Header, data []byte, original bool, now time.Time, clock *hostclock.Clock) Arrival {
	sequence, continuity := s.unwrapper.Unwrap(header.SequenceNumber)
	switch continuity {
	case feedback.Stray:
		return Arrival{}
	case feedback.Reset:
		s.nacks.Forget()
		s.continuity.restart()
		s.frames.Reset()
		if s.reception != nil {
			s.reception.Reset()
			s.lateness = feedback.NewLateness(s.publication.Codec.ClockRate)
		}
	}
	if original && s.reception != nil {
		s.reception.Received(sequence, header.Timestamp, now)
		s.lateness.Received(sequence, header.Timestamp, now)
	}
	kind := s.nacks.Received(sequence, now)
	var broken breaks
	if original {
		broken = s.continuity.received(sequence, kind)
	}
	if now.Before(s.opens) {
		s.former = max(s.former, sequence)
	}
	if s.tile == nil || sequence <= s.former || !s.framed && kind == feedback.Old {
		return Arrival{}
	}
	s.tile.packets++
	s.tile.bytes += uint64(len(data))
	s.tile.breaks.add(broken)
	if !s.framed {
		if s.delivered = now; s.tiles.shared && s.tile.takenFrom(s, now) {
			return Arrival{}
		}
		packet := s.packet(header, data, clock.ToServer(now))
		if err := s.openPacket(packet); err != nil {
			return Arrival{Refused: s.opening.refuse(*s.track, err)}
		}
		return Arrival{Packet: packet, tile: s.tile}
	}
	return s.reassemble(header, data, sequence, now, clock)
}

// reassemble adds a packet of payload v1 to its frame.
func (s *stream) reassemble(
	header *rtp.Header, data []byte, sequence int64, now time.Time, clock *hostclock.Clock,
) Arrival {
	var d payload.Descriptor
	rest, err := d.Unmarshal(data)
	if err != nil {
		return Arrival{}
	}
	place := feedback.FramePacket{
		Sequence: sequence, Frame: d.Frame, Index: int(d.Index), Source: int(d.Source),
		Packets: d.Packets(), Marker: header.Marker,
	}
	s.repair.Received(s.nacks, place, now)
	s.tile.ledger.seen(s.tile.extend(d.Frame), now)
	s.stamps.First(d.Frame)
	complete, err := s.frames.Push(&d, rest, now)
	if err != nil || complete == nil {
		return Arrival{}
	}
	s.repair.Complete(s.nacks, place)
	s.tile.replaced += uint64(complete.Recovered)
	s.delivered = now
	number := s.tile.extend(complete.Number)
	if s.tile.complete(number, s.captured(complete), s.tiles.repeats(now)) {
		return Arrival{}
	}
	s.tile.ledger.taken(number)
	if err := s.openFrame(complete); err != nil {
		s.tile.ledger.refused()
		s.tile.delivered.remove(number)
		track := *s.track
		track.Quality = volumetric.Quality(complete.Quality)
		return Arrival{Refused: s.opening.refuse(track, err)}
	}
	return Arrival{
		Frame: s.frame(complete, clock),
		Times: frametrace.Arrived{
			First: complete.First, Segment: complete.Begun, Last: complete.Last, Stamp: s.stamps.Find(complete.Number),
		},
		tile: s.tile,
	}
}

// captured returns the capture time of a complete frame, the zero time if it is unknown.
func (s *stream) captured(f *payload.Frame) time.Time {
	if f.Prefixed || !s.publication.VR2Gather {
		return f.Prefix.Capture
	}
	var header vr2gather.FrameHeader
	if _, err := header.Parse(f.Data); err != nil {
		return time.Time{}
	}
	return header.Capture()
}

// frame returns a complete frame for the program. The memory is not recycled, because the program keeps the frame.
func (s *stream) frame(f *payload.Frame, clock *hostclock.Clock) *Frame {
	track := *s.track
	track.Quality = volumetric.Quality(f.Quality)
	frame := &Frame{
		Track:    track,
		Number:   s.tile.extend(f.Number),
		Codec:    volumetric.FourCC(f.Prefix.FourCC),
		Capture:  f.Prefix.Capture,
		Data:     f.Data,
		First:    clock.ToServer(f.First),
		Complete: clock.ToServer(f.Last),
	}
	if s.publication.VR2Gather && !f.Prefixed {
		frame.unwrap()
	}
	return frame
}

// unwrap removes VR2Gather's header from a frame.
func (f *Frame) unwrap() {
	f.Whole = f.Data
	var header vr2gather.FrameHeader
	if data, err := header.Parse(f.Whole); err == nil {
		f.Codec, f.Capture, f.Data = header.FourCC, header.Capture(), data
	}
}

// packet copies a packet of a codec without payload v1 for the program.
func (s *stream) packet(header *rtp.Header, data []byte, arrival time.Time) *Packet {
	p := &Packet{
		Track:   *s.track,
		Codec:   s.publication.Codec,
		Packet:  rtp.Packet{Header: header.Clone(), Payload: append([]byte(nil), data...)},
		Arrival: arrival,
	}
	if capture, ok := s.captures.Capture(header.Timestamp); ok {
		p.Capture = capture
	}
	return p
}

// expire expires frames after their deadline, and updates the tile's counts.
func (s *stream) expire(now time.Time, deadline time.Duration, scratch []payload.GivenUp) []payload.GivenUp {
	scratch = s.frames.Expire(now, scratch[:0])
	if s.tile == nil {
		return scratch
	}
	for _, given := range scratch {
		number := s.tile.extend(given.Number)
		s.tile.ledger.taken(number)
		if !s.tile.repeats(number, s.tiles.repeats(now)) {
			s.tile.ledger.undecodable()
		}
	}
	s.tile.ledger.settle(now, deadline)
	return scratch
}
