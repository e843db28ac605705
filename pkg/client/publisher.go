package client

import (
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

// restartDistance: a number this far below the newest starts the numbers again. It is ten seconds at 100 frames per
// second, as in receivers.
const restartDistance = 1000

// Publisher sends the frames of one publication. The methods are safe for concurrent use. Frames of one tile at one
// quality must be written in the order of their numbers.
type Publisher struct {
	all         *publishers
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

// Stages are the times at which a frame reached the stages before WriteFrame, by this host's clock. Unknown times are
// zero.
type Stages struct {
	Acquired, TilingBegan, Tiled, EncodingBegan, Encoded time.Time
}

// newPublisher returns a publisher that is not in the list of publishers yet.
func newPublisher(all *publishers, publication volumetric.Publication) *Publisher {
	return &Publisher{
		all:         all,
		description: publication,
		present: &way{
			media: all.path.media(),
			sent:  uplink.NewPublication(publication, all.config.Spread, all.config.QueueBudget),
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
		Spread: w.sent.Spread(len(payloads)), Times: p.traced(tile, quality, &f),
	})
	return err == nil, err
}

// traced returns the times of a frame, nil if frames are not traced.
func (p *Publisher) traced(tile int, quality volumetric.Quality, f *OutgoingFrame) *frametrace.Sent {
	if !p.all.path.media().tracing.TracesSent() {
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
	if p.all.sealer != nil {
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

// frameData returns the data of a frame after its descriptor: the prefix, if there is one, and the data, which is
// encrypted if the session has keys. The error wraps ErrKey.
func (p *Publisher) frameData(tile int, quality volumetric.Quality, f *OutgoingFrame) ([]byte, error) {
	if p.description.VR2Gather {
		return f.Data, nil
	}
	prefix := payload.Prefix{FourCC: f.Codec, Capture: p.all.path.media().serverTime(f.Capture), Stamp: f.Stamp}
	data := prefix.AppendTo(make([]byte, 0, p.frameSize(len(f.Data))))
	if p.all.sealer == nil {
		return append(data, f.Data...), nil
	}
	about := e2ee.Subject{
		Publication: p.description.Name, Tile: tile, Quality: quality, Number: f.Number, Prefix: data,
	}
	return p.all.sealer.Seal(data, about, f.Data)
}

// frameSize returns the size of a frame's data after its descriptor. Encryption may add a few bytes less.
func (p *Publisher) frameSize(length int) int {
	if !p.description.VR2Gather {
		length += payload.PrefixSize
	}
	if p.all.sealer != nil {
		length += e2ee.Overhead
	}
	return length
}

// sealed returns the payloads of a frame of another codec, encrypted if the session has keys. The error wraps ErrKey.
func (p *Publisher) sealed(tile int, payloads [][]byte) ([][]byte, error) {
	if p.all.sealer == nil {
		return payloads, nil
	}
	about := e2ee.Subject{Publication: p.description.Name, Tile: tile}
	encrypted := make([][]byte, len(payloads))
	for i, data := range payloads {
		var err error
		encrypted[i], err = p.all.sealer.Seal(make([]byte, 0, len(data)+e2ee.Overhead), about, data)
		if err != nil {
			return nil, err
		}
	}
	return encrypted, nil
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
		p.all.events.add(e)
	}
}

// SetPose sends the pose of the object to the other participants. Like viewpoints, the newest pose is sent at most 60
// times per second.
func (p *Publisher) SetPose(pose Pose) {
	p.all.updates.SetPose(&signal.Pose{
		Publication: p.description.Name,
		Position:    pose.Position,
		Orientation: rotation(pose.Orientation),
		Scale:       pose.Scale,
		Boxes:       pose.Boxes,
		Priority:    pose.Priority,
	})
}

// attach assigns a line of the connection to a server to a track.
func (p *Publisher) attach(m *media, mid string, o uplink.Outlet, tile int, quality volumetric.Quality) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if w := p.on(m); w != nil {
		m.uplink.Attach(mid, o, w.sent, tile, quality)
	}
}

// detach frees the lines of a publication that has ended.
func (p *Publisher) detach() {
	m := p.all.path.media()
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, w := range []*way{p.present, p.next, p.former} {
		if w != nil {
			w.media.uplink.Detach(w.sent)
		}
	}
}

// carrier returns the way of the present frames.
func (p *Publisher) carrier() *way {
	m := p.all.path.media()
	m.mu.Lock()
	defer m.mu.Unlock()
	return p.present
}

// on returns the way over a server's connection, nil if there is none. The caller holds the lock.
func (p *Publisher) on(m *media) *way {
	for _, w := range []*way{p.present, p.next, p.former} {
		if w != nil && w.media == m {
			return w
		}
	}
	return nil
}

// follow prepares the way over the connection to the server that the session moves to.
func (p *Publisher) follow(m *media) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if p.on(m) == nil {
		p.next = &way{media: m, sent: uplink.NewPublicationAfter(p.present.sent)}
	}
}

// wayOfFrame returns the way of a frame of payload v1.
func (p *Publisher) wayOfFrame(number uint32, now time.Time) *way {
	m := p.all.path.media()
	m.mu.Lock()
	order := payload.ExtendFrame(p.newest, number)
	m.mu.Unlock()
	return p.wayOf(order, now)
}

// wayOf returns the way of a frame. order increases from frame to frame, and the tiles and qualities of one frame have
// the same order. The first frame above all before takes the next way, if that is ready.
func (p *Publisher) wayOf(order int64, now time.Time) *way {
	m := p.all.path.media()
	m.mu.Lock()
	defer m.mu.Unlock()
	p.written = now
	switch {
	case p.former != nil && order <= p.boundary && order > p.boundary-restartDistance && p.former.media.connected:
		return p.former
	case p.next != nil && order != p.newest && (p.ready() || !p.present.media.connected):
		p.advance()
	}
	if order > p.newest || order < p.newest-restartDistance {
		p.newest = order
	}
	return p.present
}

// ready reports whether the next way has all tracks of the present one. The caller holds the lock.
func (p *Publisher) ready() bool {
	if !p.next.media.connected {
		return false
	}
	for track := range p.description.TrackCount() {
		if p.present.sent.Negotiated(track) && !p.next.sent.Negotiated(track) {
			return false
		}
	}
	return true
}

// advance makes the next way the present one. The caller holds the lock.
func (p *Publisher) advance() {
	p.former, p.present, p.next, p.boundary = p.present, p.next, nil, p.newest
	if w := p.present.wanted; w != nil {
		p.all.events.add(*w)
	}
}

// moves reports whether frames still take the connection that the session leaves. A publication without frames for a
// second waits for none.
func (p *Publisher) moves(now time.Time) bool {
	m := p.all.path.media()
	m.mu.Lock()
	defer m.mu.Unlock()
	return p.next != nil && now.Sub(p.written) < time.Second
}

// leave removes the way over the connection that the session has left.
func (p *Publisher) leave() {
	m := p.all.path.media()
	m.mu.Lock()
	defer m.mu.Unlock()
	if p.next != nil {
		p.advance()
	}
	p.former = nil
}

// publishers are the publishers of a session, by publication name. The methods are safe for concurrent use.
type publishers struct {
	config  Config
	path    *path
	events  eventQueue
	updates *signalling.Updates
	// sealer encrypts what this client sends. It is nil if the session has no keys, and set before the first publisher.
	sealer *e2ee.Sealer

	mu     sync.Mutex
	byName map[string]*Publisher
}

// begin makes the publishers of the configuration, and their sealer, after the join: the token may have set the names
// of the room and of the participant.
func (ps *publishers) begin(joined *signal.Joined) error {
	if keys := ps.config.Keys; keys != nil {
		if ps.config.Passphrase != "" {
			secret, err := e2ee.PassphraseSecret(ps.config.Passphrase, joined.Room)
			if err != nil {
				return err
			}
			if err := keys.SetSecret(passphraseEpoch, secret); err != nil {
				return err
			}
		}
		ps.sealer = e2ee.NewSealer(keys, joined.Identity)
	}
	for _, publication := range ps.config.Publications {
		ps.add(newPublisher(ps, publication))
	}
	return nil
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
