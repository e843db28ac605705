package uplink

import (
	"fmt"
	"testing"
	"time"

	"github.com/pion/rtp"

	"github.com/volsfu/volsfu/internal/congestion"
	"github.com/volsfu/volsfu/internal/congestion/pacing"
	"github.com/volsfu/volsfu/pkg/client/internal/hostclock"
	"github.com/volsfu/volsfu/pkg/frametimes"
	"github.com/volsfu/volsfu/pkg/payload"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

var epoch = time.Date(2026, 11, 20, 15, 30, 0, 123_456_789, time.UTC)

// defaultSpread is a client's default spread of frames.
const defaultSpread = 0.4

// newRig makes an uplink that begins now.
func newRig(t testing.TB) *Uplink {
	t.Helper()
	plan, err := pacing.Mode(fmt.Sprintf("spread:%g", defaultSpread)).Plan()
	if err != nil {
		t.Fatal(err)
	}
	clock := hostclock.New(frametimes.SourceSystem, 0)
	return New(plan, &clock, time.Now())
}

// limits returns the configuration of an estimate with a start rate and a maximum. 0 is the default.
func limits(start, most congestion.Bitrate) congestion.Config {
	config := congestion.DefaultConfig()
	usual := config.Limits()
	config.Max, config.Start = most, start
	if most == 0 {
		config.Max = max(usual.Max, start)
	}
	if start == 0 {
		config.Start = min(usual.Start, config.Max)
	}
	config.Min = min(usual.Min, config.Start)
	return config
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

// published makes a publication whose tracks are all negotiated, with SSRCs from 100 on in steps of ten, on lines "b",
// "c" and so on. Packets are not numbered, so there is no estimate and no limit.
func published(t testing.TB, u *Uplink, description volumetric.Publication) (*Publication, []*wire) {
	t.Helper()
	p := NewPublication(description, defaultSpread, 0)
	return p, negotiate(u, p)
}

// negotiate assigns a line to each track of a publication.
func negotiate(u *Uplink, p *Publication) []*wire {
	var wires []*wire
	for tile := range p.description.Tiles {
		for q := range p.description.Qualities {
			ssrc := uint32(100 + 10*len(wires))
			w := &wire{mimeType: p.description.Codec.MIMEType, ssrc: ssrc, retransmission: ssrc + 1}
			wires = append(wires, w)
			u.Attach(string(rune('a'+len(wires))), w, p, tile, volumetric.Quality(q))
		}
	}
	return wires
}

// write writes a frame of payload v1, and reports whether it is sent.
func write(
	t testing.TB, u *Uplink, p *Publication, tile int, quality volumetric.Quality, number uint32, size int,
) bool {
	t.Helper()
	now, track := time.Now(), p.Track(tile, quality)
	length := payload.PrefixSize + size
	parity := p.Parity(payload.SourceFragments(length))
	u.Measure(p, track, now, FrameSize(length, parity))
	if u.Undecided() {
		u.Weigh(now)
	}
	if !u.Takes(p, track) {
		return false
	}
	prefix := payload.Prefix{Capture: now}
	descriptor := payload.Descriptor{Prefixed: true, Quality: uint8(quality), Parity: uint16(parity), Frame: number}
	payloads, err := Fragment(descriptor, append(prefix.AppendTo(nil), make([]byte, size)...))
	if err != nil {
		t.Fatal(err)
	}
	u.Enqueue(Frame{
		Publication: p, Track: track, Capture: now, Payloads: payloads, Spread: p.Spread(len(payloads)),
	}, now)
	return true
}

// flush sends the packets that are due by the given time.
func flush(u *Uplink, now time.Time) {
	for _, packet := range u.Depart(now, nil) {
		packet.Write()
	}
}

// step steps the estimate and decides which tracks are sent.
func step(u *Uplink, now time.Time) {
	u.Step(now)
	u.Weigh(now)
}
