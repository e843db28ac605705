package client

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/volsfu/volsfu/pkg/client/internal/frametrace"
	"github.com/volsfu/volsfu/pkg/client/internal/signalling"
	"github.com/volsfu/volsfu/pkg/client/internal/uplink"
	"github.com/volsfu/volsfu/pkg/e2ee"
	"github.com/volsfu/volsfu/pkg/payload"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Publisher sends the frames of one publication. The methods are safe for concurrent use. Frames of one tile at one
// quality must be written in the order of their numbers.
type Publisher struct {
	session     *Session
	description volumetric.Publication

	// The lock of media guards the fields below. present carries the frames. next will carry them once the connection
	// to another server has all tracks. former carries frames up to the number boundary.
	present, next, former *way
	boundary              int64
	// newest is the order of the newest frame, written when it was written.
	newest  int64
	written time.Time
}

// way is the state of a publication in the uplink to a server.
type way struct {
	media *media
	sent  *uplink.Publication
	// wanted is the server's last message.
	wanted *Wanted
}

// OutgoingFrame is one encoded tile at one quality.
type OutgoingFrame struct {
	// Number counts capture instants. All tiles and qualities of one instant have the same number. The next published
	// instant has the next number.
	Number uint32
	// Capture is the capture time, by this host's clock.
	Capture time.Time
	// Stamp replaces Capture in the prefix of the frame unless it is 0: the capture time as a 64-bit NTP timestamp by
	// the server's clock. Stamp is for frames that are repeated as they were published before.
	Stamp uint64
	// Codec names the encoding of Data. Publications marked VR2Gather ignore Codec.
	Codec volumetric.FourCC
	// Data is the encoded tile, empty if the tile has no points. In a publication marked VR2Gather, Data begins with
	// VR2Gather's header and is sent unchanged. Data is copied.
	Data []byte
	// Stages are the times of earlier stages, for frame times.
	Stages Stages
}

func newPublisher(s *Session, publication volumetric.Publication) *Publisher {
	return &Publisher{
		session:     s,
		description: publication,
		present: &way{
			media: s.media(), sent: uplink.NewPublication(publication, s.config.Spread, s.config.QueueBudget),
		},
	}
}

// has reports whether the publication has a quality of a tile.
func (p *Publisher) has(tile int, quality volumetric.Quality) bool {
	return p.carrier().sent.Has(tile, quality)
}

// Publication returns the description that was published.
func (p *Publisher) Publication() volumetric.Publication { return p.description }

// WriteFrame sends one frame as payload v1, spread over part of the frame interval, encrypted if the session has keys.
// The error wraps ErrNotConnected if the track is not negotiated yet or the connection is down, and ErrKey if there is
// no key to encrypt with. taken reports whether the frame is queued. A queued frame is dropped if it waits too long for
// the uplink (UplinkCounts.Dropped). If taken is false without an error, the track has no receiver or the uplink cannot
// carry it: the frame is counted (UplinkCounts.Paused, GivenUp) and not sent.
func (p *Publisher) WriteFrame(tile int, quality volumetric.Quality, f OutgoingFrame) (taken bool, err error) {
	if !p.has(tile, quality) {
		return false, fmt.Errorf("%w: %q tile %d quality %d", ErrNotPublished, p.description.Name, tile, quality)
	}
	w := p.wayOfFrame(f.Number, time.Now())
	track, length := w.sent.Track(tile, quality), p.frameSize(len(f.Data))
	size := uplink.FrameSize(length, w.sent.Parity(payload.SourceFragments(length)))
	if taken, err := w.takes(track, f.Capture, size); !taken {
		return false, err
	}
	data, err := p.frameData(tile, quality, &f)
	if err != nil {
		return false, fmt.Errorf("%q tile %d quality %d: %w", p.description.Name, tile, quality, err)
	}
	descriptor := payload.Descriptor{
		Prefixed: !p.description.VR2Gather, Quality: uint8(quality), Frame: f.Number,
		Parity: uint16(w.sent.Parity(payload.SourceFragments(len(data)))),
	}
	payloads, err := uplink.Fragment(descriptor, data)
	if err != nil {
		return false, fmt.Errorf("%q tile %d quality %d: %w", p.description.Name, tile, quality, err)
	}
	err = w.media.enqueue(uplink.Frame{
		Publication: w.sent, Track: track, Capture: f.Capture, Payloads: payloads,
		Spread: w.sent.Spread(len(payloads)), Times: p.times(tile, quality, &f),
	})
	return err == nil, err
}

// times returns the times of a frame, nil if frames are not traced.
func (p *Publisher) times(tile int, quality volumetric.Quality, f *OutgoingFrame) *frametrace.Sent {
	if !p.session.media().tracing.TracesSent() {
		return nil
	}
	return &frametrace.Sent{
		Publication: p.description.Name, Tile: tile, Quality: quality, Number: f.Number,
		Bytes: len(f.Data), Capture: f.Capture, Stages: frametrace.Stages(f.Stages),
	}
}

// WritePackets sends the RTP payloads of one frame of a codec that does not use payload v1, such as Opus or H264. If
// the publication is video, the last packet has the marker. The payloads must not change afterwards. taken has the same
// meaning as for WriteFrame.
//
// The qualities of a tile leave one after the other, not interleaved as with WriteFrame. Without a descriptor, the end
// of a frame is known only with its last packet, so the server could not switch between overlapping frames.
func (p *Publisher) WritePackets(
	tile int, quality volumetric.Quality, capture time.Time, payloads [][]byte,
) (taken bool, err error) {
	if !p.has(tile, quality) {
		return false, fmt.Errorf("%w: %q tile %d quality %d", ErrNotPublished, p.description.Name, tile, quality)
	}
	w := p.wayOf(capture.UnixNano(), time.Now())
	track := w.sent.Track(tile, quality)
	size := uplink.PacketsSize(payloads)
	if p.session.sealer != nil {
		size += len(payloads) * e2ee.Overhead
	}
	if taken, err := w.takes(track, capture, size); !taken {
		return false, err
	}
	if payloads, err = p.sealed(tile, payloads); err != nil {
		return false, fmt.Errorf("%q tile %d quality %d: %w", p.description.Name, tile, quality, err)
	}
	err = w.media.enqueue(uplink.Frame{
		Publication: w.sent, Track: track, Capture: capture, Payloads: payloads,
		Spread: w.sent.SpreadInTurn(), InTurn: true,
	})
	return err == nil, err
}

// takes measures a frame of a track, and reports whether to send the frame. The error is ErrNotConnected.
func (w *way) takes(track int, capture time.Time, size int) (bool, error) {
	m := w.media
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.carries(w.sent, track) {
		return false, ErrNotConnected
	}
	m.uplink.Measure(w.sent, track, capture, size)
	if m.uplink.Undecided() {
		// Otherwise the first frame would be sent, and the second would not.
		m.weigh(time.Now())
	}
	return m.uplink.Takes(w.sent, track), nil
}

// Wanted reports whether the program should encode and write a tile at a quality: the server has reported a receiver of
// the track, and the uplink can carry the track. Frames of other tracks are not sent. The program calls Wanted for each
// frame. The events Wanted and Uplink report changes.
func (p *Publisher) Wanted(tile int, quality volumetric.Quality) bool {
	w := p.carrier()
	if !w.sent.Has(tile, quality) {
		return false
	}
	m := w.media
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.uplink.Wanted(w.sent, w.sent.Track(tile, quality), time.Now())
}

// GaveUp reports whether a tile is not sent at a quality because the uplink cannot carry it beside tracks of higher
// priority.
func (p *Publisher) GaveUp(tile int, quality volumetric.Quality) bool {
	w := p.carrier()
	if !w.sent.Has(tile, quality) {
		return false
	}
	w.media.mu.Lock()
	defer w.media.mu.Unlock()
	return w.sent.GaveUp(w.sent.Track(tile, quality))
}

// want sets the qualities of each tile, and the share of parity, that a server wants. The program gets the event if
// that server's connection carries the frames.
func (p *Publisher) want(m *media, message signal.WantedPublication) {
	e := Wanted{Publication: message.Publication, Tiles: message.Tiles, Parity: message.Parity}
	m.mu.Lock()
	w := p.on(m)
	if w != nil {
		w.sent.SetParity(message.Parity)
		m.uplink.Want(w.sent, message.Tiles, time.Now())
		w.sent.SetLowestTaken(message.LowestTaken)
		w.wanted = &e
		m.wakeSender()
	}
	present := w == p.present
	m.mu.Unlock()
	if w != nil && present {
		p.session.events.add(e)
	}
}

// detach frees the lines of a publication that has ended.
func (p *Publisher) detach() {
	m := p.session.media()
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, w := range []*way{p.present, p.next, p.former} {
		if w != nil {
			w.media.uplink.Detach(w.sent)
		}
	}
}

// Publish announces one more publication.
func (s *Session) Publish(ctx context.Context, publication volumetric.Publication) (*Publisher, error) {
	publication, err := s.config.mark(publication)
	if err != nil {
		return nil, err
	}
	p := newPublisher(s, publication)
	if !s.publishers.add(p) {
		message := fmt.Sprintf("publication %q exists already", publication.Name)
		return nil, &signal.Error{Code: signal.CodeExists, Message: message}
	}
	// The session may have moved to another server since the publisher was made.
	p.follow(s.media())
	// The request is repeated until there is a reply. If the server accepted the publication without this client's
	// knowledge, the client could neither use the publication nor publish it again.
	err = s.insist(ctx, signal.CodeExists, func() signal.Message { return &signal.Publish{Publication: publication} })
	if err != nil {
		s.publishers.remove(publication.Name)
		return nil, err
	}
	return p, nil
}

// insist repeats a request until there is a reply, if necessary on the next websocket. done is the code of the server
// for a request that it carried out before an interruption.
func (s *Session) insist(ctx context.Context, done signal.Code, message func() signal.Message) error {
	for interrupted := false; ; {
		resumed := s.requests.Resumed()
		_, err := s.request(ctx, message())
		var refused *signal.Error
		switch {
		case errors.Is(err, ErrInterrupted):
			interrupted = true
		case errors.Is(err, signalling.ErrUnsent):
			select {
			case <-resumed:
			case <-ctx.Done():
				return errors.Join(ctx.Err(), err)
			case <-s.ctx.Done():
				return s.Err()
			}
		case interrupted && errors.As(err, &refused) && refused.Code == done:
			return nil
		default:
			return err
		}
	}
}

// Publisher returns the publisher of a publication of this client, nil if there is none.
func (s *Session) Publisher(name string) *Publisher { return s.publishers.get(name) }

// Unpublish ends a publication of this client.
func (s *Session) Unpublish(ctx context.Context, name string) error {
	s.publishers.remove(name)
	s.updates.Forget(name)
	s.requested.mute(name, false)
	return s.insist(ctx, signal.CodeNotFound, func() signal.Message { return &signal.Unpublish{Publication: name} })
}

// publishers are the publishers of a session, by publication name. The methods are safe for concurrent use. The zero
// value is empty.
type publishers struct {
	mu     sync.Mutex
	byName map[string]*Publisher
}

// add adds a publisher, and reports whether its name was free.
func (ps *publishers) add(p *Publisher) bool {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	name := p.description.Name
	if ps.byName[name] != nil {
		return false
	}
	if ps.byName == nil {
		ps.byName = make(map[string]*Publisher)
	}
	ps.byName[name] = p
	return true
}

// get returns the publisher with a name, nil if there is none.
func (ps *publishers) get(name string) *Publisher {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	return ps.byName[name]
}

// list returns the publishers, sorted by name.
func (ps *publishers) list() []*Publisher {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	var list []*Publisher
	for _, name := range slices.Sorted(maps.Keys(ps.byName)) {
		list = append(list, ps.byName[name])
	}
	return list
}

// remove removes the publisher with a name, if there is one, and frees its lines.
func (ps *publishers) remove(name string) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if p := ps.byName[name]; p != nil {
		p.detach()
		delete(ps.byName, name)
	}
}
