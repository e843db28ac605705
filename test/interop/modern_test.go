package interop

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/pkg/vr2gather"
	"github.com/volsfu/volsfu/test/interop/oldpeer"
	"github.com/volsfu/volsfu/test/testbed"
)

// modern is a participant that uses signalling v1 with VR2Gather's formats.
type modern struct {
	session *client.Session

	mu    sync.Mutex
	seen  map[volumetric.TileRef]*sight
	wrong []error
	// left are the participants that have left.
	left map[string]bool
}

// The names of v1 participants' publications.
const (
	bodyName  = "body"
	voiceName = "voice"
)

// publications returns those of a programme.
func (p programme) publications() []volumetric.Publication {
	return []volumetric.Publication{
		{
			Name: voiceName, Kind: volumetric.KindAudio, Mode: volumetric.ModeAlternatives, VR2Gather: true,
			Codec: volumetric.Codec{MIMEType: "audio/pcm", ClockRate: 48000},
			Tiles: make([]volumetric.Tile, 1), Qualities: make([]volumetric.QualityLevel, 1),
		},
		{
			Name: bodyName, Kind: volumetric.KindVideo, Mode: volumetric.ModeAlternatives, VR2Gather: true,
			Codec:     volumetric.Codec{MIMEType: volumetric.MIMEVolumetric, ClockRate: 90000, Format: "codec=cwi0"},
			FrameRate: float64(time.Second) / float64(p.Interval),
			Tiles:     make([]volumetric.Tile, p.Tiles), Qualities: make([]volumetric.QualityLevel, p.Qualities),
		},
	}
}

// joinModern joins by signalling v1, publishes a programme, if it has tiles, and receives all media until the test
// ends.
func joinModern(t *testing.T, url, identity string, p programme) *modern {
	t.Helper()
	config := client.Config{
		URL: url, Room: room, Identity: identity, Receive: true,
		// Long deadlines, so that nothing is dropped on a busy machine.
		Deadline: signal.MaxDeadline, MinUplink: testbed.Everything, QueueBudget: patience,
	}
	if p.Tiles > 0 {
		config.Publications = p.publications()
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	session, err := client.Join(ctx, config)
	if err != nil {
		t.Fatal(err)
	}
	m := &modern{session: session, seen: make(map[volumetric.TileRef]*sight), left: make(map[string]bool)}
	publishing, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(m.receive)
	if p.Tiles > 0 {
		running.Go(func() { m.publish(publishing, p) })
	}
	t.Cleanup(func() {
		stop()
		_ = session.Close()
		running.Wait()
	})
	return m
}

// publish publishes a programme until the context ends.
func (m *modern) publish(ctx context.Context, p programme) {
	ticker := time.NewTicker(p.Interval)
	defer ticker.Stop()
	body, voice := m.session.Publisher(bodyName), m.session.Publisher(voiceName)
	for instant := uint32(0); ; instant++ {
		var capture time.Time
		select {
		case capture = <-ticker.C:
		case <-ctx.Done():
			return
		}
		p.show(body, instant, capture)
		sound := content{Client: p.Client, Tile: oldpeer.SoundTile, Instant: instant, Size: soundBytes}.frame(capture)
		packet := vr2gather.Packet{Kind: volumetric.KindAudio, Client: uint32(p.Client), Frame: instant,
			Length: uint32(len(sound)), Data: sound}
		if payload, err := packet.Append(nil); err == nil {
			_, _ = voice.WritePackets(0, 0, capture, [][]byte{payload})
		}
	}
}

// show publishes all tiles of one instant, at the wanted qualities.
func (p programme) show(body *client.Publisher, instant uint32, capture time.Time) {
	for tile := range p.Tiles {
		for quality := range p.Qualities {
			if q := volumetric.Quality(quality); body.Wanted(tile, q) && !p.skips(tile, quality, instant) {
				data := p.tile(tile, quality, instant).frame(capture)
				_, _ = body.WriteFrame(tile, q, client.OutgoingFrame{Number: instant, Capture: capture, Data: data})
			}
		}
	}
}

// receive receives media until the session ends.
func (m *modern) receive() {
	frames, events, packets := m.session.Frames(), m.session.Events(), m.session.Packets()
	for frames != nil || events != nil || packets != nil {
		select {
		case f, open := <-frames:
			if !open {
				frames = nil
				continue
			}
			m.take(f.Track, f.Whole)
		case p, open := <-packets:
			if !open {
				packets = nil
				continue
			}
			m.hear(p)
		case e, open := <-events:
			if !open {
				events = nil
				continue
			}
			if gone, ok := e.(client.ParticipantLeft); ok {
				m.mu.Lock()
				m.left[gone.Identity] = true
				m.mu.Unlock()
			}
		}
	}
}

// hear receives a packet of sound, which is a frame.
func (m *modern) hear(p client.Packet) {
	packet, err := vr2gather.ParsePacket(volumetric.KindAudio, p.Payload)
	if err != nil {
		m.note(fmt.Errorf("sound of %v: %w", p.Track, err))
		return
	}
	ref := p.Track
	ref.Tile, ref.Quality = oldpeer.SoundTile, 0
	m.take(ref, packet.Data)
}

// sawLeave reports whether a participant has left.
func (m *modern) sawLeave(identity string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.left[identity]
}

func (m *modern) note(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.wrong = append(m.wrong, err)
}

// take compares a frame with the published one.
func (m *modern) take(track volumetric.TrackRef, data []byte) {
	c, err := read(data)
	if err != nil {
		m.note(fmt.Errorf("%v: %w", track, err))
		return
	}
	if c.Tile != track.Tile || volumetric.Quality(c.Quality) != track.Quality {
		m.note(fmt.Errorf("%v: frame is %+v", track, c))
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.seen[track.TileRef]
	if s == nil {
		s = &sight{}
		m.seen[track.TileRef] = s
	}
	s.take(c)
}

// of returns the record of a tile of a participant; the tile of its sound is oldpeer.SoundTile.
func (m *modern) of(participant string, tile int) sight {
	name := bodyName
	if tile == oldpeer.SoundTile {
		name = voiceName
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if s := m.seen[volumetric.TileRef{PublicationRef: volumetric.PublicationRef{Participant: participant,
		Publication: name}, Tile: tile}]; s != nil {
		return *s
	}
	return sight{}
}

// flows are a participant's tiles and its sound.
func (m *modern) flows(participant string, tiles int) (flows []flow) {
	for tile := oldpeer.SoundTile; tile < tiles; tile++ {
		flows = append(flows, flow{fmt.Sprintf("tile %d of %s, by v1", tile, participant),
			func() int { return m.of(participant, tile).Frames }})
	}
	return flows
}

// codecs returns the frame codecs of the publications of a participant.
func (m *modern) codecs(participant string) map[string]string {
	codecs := map[string]string{}
	for _, p := range m.session.Participants() {
		for _, publication := range p.Publications {
			if p.Identity == participant {
				codecs[publication.Name] = publication.Codec.Format
			}
		}
	}
	return codecs
}

// lost returns the number of missing frames of a participant, in tiles that arrive at one quality, for a programme
// without skipped frames.
func (m *modern) lost(participant string, tiles int) (n int) {
	for tile := range tiles {
		n += m.of(participant, tile).Lost
	}
	return n
}

// missing returns the number of lost packets that were not repaired.
func (m *modern) missing() (n int) {
	for _, s := range m.session.Stats() {
		n += int(s.Lost - s.Recovered)
	}
	return n
}

// undecodable returns the number of frames that were incomplete at their deadline.
func (m *modern) undecodable() (n int) {
	for _, s := range m.session.Stats() {
		n += int(s.Undecodable)
	}
	return n
}

// tally returns the counts of all sources.
func (m *modern) tally() (sum tally) {
	m.mu.Lock()
	defer m.mu.Unlock()
	sum.bad = len(m.wrong)
	for _, s := range m.seen {
		sum.frames += s.Frames
	}
	for _, s := range m.session.Stats() {
		sum.incomplete += int(s.Undecodable)
		sum.packets += int(s.Lost - s.Recovered)
	}
	return sum
}

// whole fails the test for every frame that differs from the sent one, and for incomplete ones unless packets of an old
// publisher, which are not repaired, were lost, or expired frames were ended by the server.
func (m *modern) whole(t *testing.T, expired int) {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.wrong) > 0 {
		t.Errorf("%d frames are wrong, the first of them: %v", len(m.wrong),
			errors.Join(m.wrong[:min(len(m.wrong), 5)]...))
	}
	for _, s := range m.session.Stats() {
		if lost := int64(s.Lost - s.Recovered); s.Undecodable > lost+int64(expired) {
			t.Errorf("%v: %d of %d frames are undecodable, though only %d packets are missing, and the server has "+
				"ended only %d expired frames", s.Track, s.Undecodable, s.Expected, lost, expired)
		}
	}
}
