package client

import (
	"context"
	"encoding/binary"
	"testing"
	"time"

	"github.com/pion/rtcp"
	"github.com/pion/rtp"

	"github.com/volsfu/volsfu/internal/transport"
	"github.com/volsfu/volsfu/pkg/client/internal/signalling"
	"github.com/volsfu/volsfu/pkg/payload"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// rig is the media of a session without a server and without goroutines. Tests step it.
type rig struct {
	*media
	session *Session
}

func newRig(t testing.TB, config Config) *rig {
	t.Helper()
	config.URL = "ws://sfu.example.org:8080"
	config, err := config.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	s := &Session{newParts(config)}
	s.room.welcome(&signal.Joined{})
	return &rig{media: s.path.media(), session: s}
}

// after returns the media of the server to which the session moves.
func (r *rig) after() *rig { return &rig{media: newMediaAfter(r.media), session: r.session} }

// dial connects the session to a server that accepts a websocket.
func (r *rig) dial(t *testing.T, url string) *signalling.Conn {
	t.Helper()
	conn, err := signalling.Dial(context.Background(), r.session.config.signalling(url))
	if err != nil {
		t.Fatal(err)
	}
	r.session.requests.Continue(conn)
	return conn
}

// described returns a publication with the given numbers of tiles and qualities.
func described(name, mimeType string, tiles, qualities int) volumetric.Publication {
	kind, rate := volumetric.KindVideo, uint32(90000)
	if mimeType == volumetric.MIMEOpus {
		kind, rate = volumetric.KindAudio, 48000
	}
	return volumetric.Publication{
		Name: name, Kind: kind, Mode: volumetric.ModeAlternatives, FrameRate: 30,
		Codec:     volumetric.Codec{MIMEType: mimeType, ClockRate: rate},
		Tiles:     make([]volumetric.Tile, tiles),
		Qualities: make([]volumetric.QualityLevel, qualities),
	}
}

// wire keeps the packets sent on one outlet, whose line is negotiated for one codec.
type wire struct {
	mimeType             string
	ssrc, retransmission uint32
	sent                 []rtp.Packet
}

func (w *wire) SSRC() uint32               { return w.ssrc }
func (w *wire) RetransmissionSSRC() uint32 { return w.retransmission }

func (w *wire) PayloadType(mimeType string) (media, retransmission uint8, ok bool) {
	if w.retransmission != 0 {
		retransmission = 97
	}
	return 96, retransmission, mimeType == w.mimeType
}

func (w *wire) Queue(h *rtp.Header, body []byte) error {
	w.sent = append(w.sent, rtp.Packet{Header: h.Clone(), Payload: append([]byte(nil), body...)})
	return nil
}

// newOutlet returns an outlet whose line is negotiated for the codec, with RTX unless retransmission is 0.
func newOutlet(mimeType string, ssrc, retransmission uint32) *wire {
	return &wire{mimeType: mimeType, ssrc: ssrc, retransmission: retransmission}
}

// incoming is an RTP stream that a test sends to a rig.
type incoming struct {
	t    testing.TB
	m    *rig
	ssrc uint32
	next uint16
}

// newIncoming adds a slot to the rig. The SSRC of its retransmissions is the next one.
func newIncoming(t testing.TB, m *rig, mid string, kind volumetric.Kind, ssrc uint32) *incoming {
	t.Helper()
	m.addStream(mid, kind, transport.Streams{SSRC: ssrc, Retransmission: ssrc + 1})
	return &incoming{t: t, m: m, ssrc: ssrc, next: 65000}
}

// packets splits a frame of size bytes into packets of payload v1.
func packets(t testing.TB, frame uint32, quality volumetric.Quality, capture time.Time, size int) [][]byte {
	t.Helper()
	data := payload.Prefix{FourCC: volumetric.FourCC{'t', 'e', 's', 't'}, Capture: capture}.AppendTo(nil)
	for i := range size {
		data = append(data, byte(i))
	}
	var f payload.Fragmenter
	if err := f.Begin(payload.Descriptor{Prefixed: true, Quality: uint8(quality), Frame: frame}, data); err != nil {
		t.Fatal(err)
	}
	list := make([][]byte, f.Packets())
	for i := range list {
		var err error
		if list[i], err = f.AppendPacket(nil, i); err != nil {
			t.Fatal(err)
		}
	}
	return list
}

// send sends a frame of three packets with the next sequence numbers, except the lost packets.
func (i *incoming) send(frame uint32, quality volumetric.Quality, now time.Time, lost ...int) {
	i.t.Helper()
	for index, body := range packets(i.t, frame, quality, now, 3000) {
		number := i.next
		i.next++
		gone := false
		for _, l := range lost {
			gone = gone || l == index
		}
		if !gone {
			i.deliver(number, 3000*frame, body, now)
		}
	}
}

func (i *incoming) deliver(number uint16, timestamp uint32, body []byte, now time.Time) {
	i.t.Helper()
	i.m.RTP(i.ssrc, marshal(i.t, i.ssrc, number, timestamp, body), &transport.PacketInfo{At: now})
}

// repair sends the packet with the given number again, on the retransmission stream.
func (i *incoming) repair(number uint16, timestamp uint32, body []byte, now time.Time) {
	i.t.Helper()
	packet := marshal(i.t, i.ssrc+1, 7, timestamp, append(binary.BigEndian.AppendUint16(nil, number), body...))
	i.m.RTP(i.ssrc+1, packet, &transport.PacketInfo{At: now})
}

func marshal(t testing.TB, ssrc uint32, number uint16, timestamp uint32, body []byte) []byte {
	t.Helper()
	packet := rtp.Packet{
		Header:  rtp.Header{Version: 2, PayloadType: 96, SSRC: ssrc, SequenceNumber: number, Timestamp: timestamp},
		Payload: body,
	}
	data, err := packet.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// assign assigns a tile of a participant's publication to a slot, or nothing if the publication is nil.
func assign(
	t testing.TB, m *rig, mid string, generation uint32, participant string, tile int, p *volumetric.Publication,
) {
	t.Helper()
	a := signal.Assignment{MID: mid, Generation: generation}
	if p != nil {
		a.Track = &volumetric.TileRef{PublicationRef: volumetric.PublicationRef{Participant: participant,
			Publication: p.Name}, Tile: tile}
	}
	if !m.assign(a, p) {
		t.Fatalf("slot %q is not known", mid)
	}
}

// statsOf returns the counts of a tile of a participant's only publication.
func statsOf(t testing.TB, m *rig, participant string, tile int) TileStats {
	t.Helper()
	for _, s := range m.session.Stats() {
		if s.Track.Participant == participant && s.Track.Tile == tile {
			return s
		}
	}
	t.Fatalf("no counts of tile %d of %s", tile, participant)
	return TileStats{}
}

// newPeer returns a peer connection that is never connected.
func newPeer(t testing.TB, m *rig) *transport.Peer {
	t.Helper()
	config := transport.ClientConfig()
	config.Address = "127.0.0.1"
	endpoint, err := transport.Listen(config)
	if err != nil {
		t.Fatal(err)
	}
	peer, err := endpoint.NewPeer(m)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = peer.Close()
		_ = endpoint.Close()
	})
	return peer
}

// rtt is the round-trip time of rigs.
const rtt = 20 * time.Millisecond

// asked steps the downlink, and returns the requested packet numbers.
func asked(m *rig, now time.Time) (numbers []uint16) {
	for _, p := range m.downlink.Step(nil, now, rtt) {
		for _, pair := range p.(*rtcp.TransportLayerNack).Nacks {
			numbers = append(numbers, pair.PacketList()...)
		}
	}
	return numbers
}
