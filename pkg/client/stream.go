package client

import (
	"time"

	"github.com/pion/rtp"

	"github.com/volsfu/volsfu/internal/feedback"
	"github.com/volsfu/volsfu/internal/transport"
	"github.com/volsfu/volsfu/pkg/client/internal/frametrace"
	"github.com/volsfu/volsfu/pkg/payload"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/pkg/vr2gather"
)

// stream is one received RTP stream: what a slot of the server carries. It belongs to media's lock.
type stream struct {
	mid     string
	kind    volumetric.Kind
	streams transport.Streams

	// generation, track and publication are the present assignment; track is nil while the slot is idle.
	generation  uint32
	track       *volumetric.TrackRef
	publication volumetric.Publication
	framed      bool
	book        *tileBook

	unwrapper feedback.Unwrapper
	numbering numbering
	nacks     *feedback.NACKGenerator
	repair    feedback.FrameRepair
	frames    *payload.Reassembler
	// reception, lateness and captures know the clock rate, so they begin with an assignment.
	reception *feedback.Reception
	lateness  *feedback.Lateness
	captures  *feedback.CaptureClock
	header    rtp.Header
	// kernels are the stamps of first packets of frames under way.
	kernels frametrace.KernelStamps
}

// tileBook keeps the books of one tile, or in volumetric.ModeDescriptions of one description.
type tileBook struct {
	track volumetric.TrackRef
	// assigned counts the assignments of all tiles up to this one's last.
	assigned uint64
	ledger   ledger
	packets  uint64
	bytes    uint64
	breaks   breaks
	// replaced are source packets that parity made up for.
	replaced uint64
	// before is what the stream's NACK generator had counted when the tile was assigned to it; nacks sums earlier assignments.
	before feedback.NACKStats
	nacks  feedback.NACKStats
}

func newStream(mid string, kind volumetric.Kind, streams transport.Streams, config Config) *stream {
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
		mid:     mid,
		kind:    kind,
		streams: streams,
		nacks:   feedback.NewNACKGenerator(nack),
		frames:  payload.NewReassembler(frames),
	}
}

// assign takes a new assignment; track is nil for none.
func (s *stream) assign(generation uint32, track *volumetric.TrackRef, publication volumetric.Publication, book *tileBook) {
	if s.book != nil {
		s.book.ledger.end()
		s.book.nacks = s.book.requests(s.nacks.Stats())
	}
	s.generation, s.track, s.publication, s.book = generation, track, publication, book
	s.framed = track != nil && publication.Codec.Is(volumetric.MIMEVolumetric)
	s.frames.Reset()
	s.nacks.Release()
	if book == nil {
		return
	}
	book.before = s.nacks.Stats()
	s.captures = feedback.NewCaptureClock(publication.Codec.ClockRate)
	if s.reception == nil {
		s.reception = feedback.NewReception(publication.Codec.ClockRate)
		s.lateness = feedback.NewLateness(publication.Codec.ClockRate)
	}
}

// requests adds what the stream's NACK generator has counted since the assignment.
func (b *tileBook) requests(now feedback.NACKStats) feedback.NACKStats {
	return feedback.NACKStats{
		Reordered: b.nacks.Reordered + now.Reordered - b.before.Reordered,
		Recovered: b.nacks.Recovered + now.Recovered - b.before.Recovered,
		Lost:      b.nacks.Lost + now.Lost - b.before.Lost,
		Spared:    b.nacks.Spared + now.Spared - b.before.Spared,
		Asked:     b.nacks.Asked + now.Asked - b.before.Asked,
	}
}

// arrival is what one packet brought: a complete frame, or the packet itself where the codec is foreign.
type arrival struct {
	frame  *Frame
	packet *Packet
}

// take processes one packet of the media stream (original), or one of the retransmission stream that was unpacked into it. now is local
// time; toServer turns it into the server's.
func (s *stream) take(header *rtp.Header, data []byte, original bool, now time.Time, toServer func(time.Time) time.Time) arrival {
	sequence, continuity := s.unwrapper.Unwrap(header.SequenceNumber)
	switch continuity {
	case feedback.Stray:
		return arrival{}
	case feedback.Reset:
		s.nacks.Forget()
		s.numbering.restart()
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
		broken = s.numbering.received(sequence, kind)
	}
	if s.book == nil || !s.framed && kind == feedback.Old {
		return arrival{}
	}
	s.book.packets++
	s.book.bytes += uint64(len(data))
	s.book.breaks.add(broken)
	if !s.framed {
		return arrival{packet: s.foreign(header, data, toServer(now))}
	}
	var d payload.Descriptor
	rest, err := d.Unmarshal(data)
	if err != nil {
		return arrival{}
	}
	place := feedback.FramePacket{
		Sequence: sequence, Frame: d.Frame, Index: int(d.Index), Source: int(d.Source), Packets: d.Packets(), Marker: header.Marker,
	}
	s.repair.Received(s.nacks, place, now)
	s.book.ledger.seen(s.book.extend(d.Frame), now)
	s.kernels.First(d.Frame)
	complete, err := s.frames.Push(&d, rest, now)
	if err != nil || complete == nil {
		return arrival{}
	}
	s.repair.Complete(s.nacks, place)
	s.book.replaced += uint64(complete.Recovered)
	return arrival{frame: s.frame(complete, toServer)}
}

// frame turns a completed frame into what the program gets. Its memory is not recycled, since the program keeps it.
func (s *stream) frame(f *payload.Frame, toServer func(time.Time) time.Time) *Frame {
	track := *s.track
	track.Quality = volumetric.Quality(f.Quality)
	frame := &Frame{
		Track:    track,
		Number:   s.book.extend(f.Number),
		Codec:    volumetric.FourCC(f.Prefix.FourCC),
		Capture:  f.Prefix.Capture,
		Data:     f.Data,
		First:    toServer(f.First),
		Complete: toServer(f.Last),
		arrived:  frametrace.Arrived{First: f.First, Segment: f.Begun, Last: f.Last, Stamp: s.kernels.Find(f.Number)},
	}
	if s.publication.VR2Gather && !f.Prefixed {
		frame.unwrap()
	}
	return frame
}

// unwrap takes VR2Gather's header off a frame.
func (f *Frame) unwrap() {
	f.Whole = f.Data
	var header vr2gather.FrameHeader
	if data, err := header.Parse(f.Whole); err == nil {
		f.Codec, f.Capture, f.Data = header.FourCC, header.Capture(), data
	}
}

// foreign copies a packet of a codec without payload v1 for the program.
func (s *stream) foreign(header *rtp.Header, data []byte, arrival time.Time) *Packet {
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

// extend unwraps a frame number against the tile's newest, so that the qualities and slots of a tile agree.
func (b *tileBook) extend(number uint32) int64 {
	if b.ledger.newest == 0 {
		return int64(number)
	}
	return payload.ExtendFrame(b.ledger.newest, number)
}

// expire gives up frames that are past their deadline and settles the books.
func (s *stream) expire(now time.Time, deadline time.Duration, scratch []payload.GivenUp) []payload.GivenUp {
	scratch = s.frames.Expire(now, scratch[:0])
	if s.book == nil {
		return scratch
	}
	for range scratch {
		s.book.ledger.undecodable()
	}
	s.book.ledger.settle(now, deadline)
	return scratch
}

// sending books a change of what the slot carries and turns it into an event.
func (m *media) sending(message *signal.Sending, now time.Time) []Event {
	m.mu.Lock()
	defer m.mu.Unlock()
	var events []Event
	for _, slot := range message.Slots {
		s := m.streams[slot.MID]
		if s == nil || s.track == nil || s.generation != slot.Generation {
			continue
		}
		s.book.ledger.switched(slot.Quality == volumetric.QualityOff, now)
		if off := slot.OffFrames; off != nil {
			s.book.ledger.wasOff(s.book.extend(off.First), int64(off.Count))
		}
		events = append(events, Sending{Track: *s.track, Quality: slot.Quality, Reason: slot.Reason, Delay: time.Duration(slot.DelayUS) * time.Microsecond})
	}
	return events
}

// delivery books frames that the server says it dropped.
func (m *media) delivery(message *signal.Delivery) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, drops := range message.Dropped {
		if s := m.streams[drops.MID]; s != nil && s.book != nil && s.generation == drops.Generation {
			s.book.ledger.dropped(drops.Frames)
		}
	}
}

// addStream makes the stream of a line that the server sends on.
func (m *media) addStream(mid string, kind volumetric.Kind, streams transport.Streams) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.streams[mid] != nil || streams.SSRC == 0 {
		return
	}
	s := newStream(mid, kind, streams, m.session.config)
	m.streams[mid] = s
	m.streamBySSRC[streams.SSRC] = s
	if streams.Retransmission != 0 {
		m.streamBySSRC[streams.Retransmission] = s
	}
}

// assign takes what a slot carries from now on and reports whether the slot is known. publication is nil for none.
func (m *media) assign(a signal.Assignment, publication *volumetric.Publication) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.streams[a.MID]
	if s == nil {
		return false
	}
	if s.generation == a.Generation {
		return true
	}
	if a.Track == nil || publication == nil {
		s.assign(a.Generation, nil, volumetric.Publication{}, nil)
		return true
	}
	track := volumetric.TrackRef{TileRef: *a.Track, Quality: volumetric.QualityOff}
	if a.Quality != nil {
		track.Quality = *a.Quality
	}
	s.assign(a.Generation, &track, *publication, m.bookOf(track))
	return true
}
