package relay

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/volsfu/volsfu/cmd/volbridge/internal/bridge"
	"github.com/volsfu/volsfu/cmd/volbridge/internal/libspeex"
	"github.com/volsfu/volsfu/cmd/volbridge/internal/transcode"
	"github.com/volsfu/volsfu/internal/peer/opus"
	"github.com/volsfu/volsfu/internal/voice/libopus"
	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/pkg/vr2gather"
	"github.com/volsfu/volsfu/test/interop/oldpeer"
	"github.com/volsfu/volsfu/test/testbed"
)

// soundTest is a room with a client of signalling v1 and one of VR2Gather's own peers, and a connector for a bridge.
type soundTest struct {
	t       *testing.T
	url     string
	n       *neighbour
	session *client.Session
	peer    *oldpeer.Peer
	encoder *libspeex.Encoder
	// sent counts the frames of the connector's audio. peered has the frames of the peer.
	sent   int
	peered [][]byte
	// up is the connector's audio as received by the client. down is the client's audio and relayed the peer's audio as
	// received by the connector.
	up, down []float32
	relayed  [][]byte
	opus     *libopus.Decoder
	speex    *libspeex.Decoder
}

// toneFrame returns a frame of 20 ms of a tone in VR2Gather's format.
func toneFrame(encoder *libspeex.Encoder, number int, hertz float64) []byte {
	samples := make([]float32, libopus.FrameSamples)
	for i := range samples {
		samples[i] = float32(0.25 * math.Sin(2*math.Pi*hertz*float64(number*len(samples)+i)/libopus.Rate))
	}
	data := encoder.Encode(nil, samples)
	return append(vr2gather.NewFrameHeader(vr2gather.CodecVoice, len(data), time.Now()).Append(nil), data...)
}

// toneShare returns the share of a frequency in the amplitude of samples, and the amplitude of that frequency, after
// the first tenth of a second.
func toneShare(samples []float32, hertz float64) (part, amplitude float64) {
	samples = samples[min(len(samples), libopus.Rate/10):]
	var re, im, power float64
	for i, v := range samples {
		sin, cos := math.Sincos(2 * math.Pi * hertz * float64(i) / libopus.Rate)
		re, im, power = re+float64(v)*cos, im+float64(v)*sin, power+float64(v)*float64(v)
	}
	amplitude = 2 * math.Hypot(re, im) / float64(len(samples))
	return amplitude / math.Sqrt(2*power/float64(len(samples))), amplitude
}

// listener looks for a tone of 440 Hz in the latest half second of received audio, ten times per second of audio. On a
// busy machine packets are late or lost, so that the tone has gaps for a while.
type listener struct {
	checked         int // number of samples at the last look
	found           bool
	part, amplitude float64 // at the last look
}

// listen looks for the tone with at least this share of the amplitude, and an amplitude within the range.
func (l *listener) listen(samples []float32, least, low, high float64) {
	const window, step = libopus.Rate / 2, libopus.Rate / 10
	if l.found || len(samples) < max(window, l.checked+step) {
		return
	}
	l.checked = len(samples)
	l.part, l.amplitude = toneShare(samples[len(samples)-window:], 440)
	l.found = l.part >= least && l.amplitude >= low && l.amplitude <= high
}

// TestBridgeTranscodesSound checks that the connector's audio reaches a client of signalling v1 as Opus, that the
// client's Opus reaches the connector as VR2Gather's audio, and that the audio of one of VR2Gather's own peers reaches
// the connector unchanged.
func TestBridgeTranscodesSound(t *testing.T) {
	if err := transcode.AudioAvailable(); err != nil {
		t.Skipf("skipped: %v", err)
	}
	s := openSoundTest(t)
	stop := bridgeTo(t, &Options{
		sfu: s.url, port: s.n.bridge.String(), client: 1, layout: bridge.Layout{Tiles: 1, Qualities: 1}, input: true,
		output: true, transcode: true, pointCodec: codec.Raw,
	})
	tone := opus.Tone()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	// The client's tone has a seam every two seconds.
	var up, down listener
	for end := time.After(patience); !up.found || !down.found || len(s.relayed) < 10; {
		select {
		case now := <-ticker.C:
			s.speak()
			// Nothing is sent before the connection is established.
			_, _ = s.session.Publisher(opusName).WritePackets(0, 0, now,
				[][]byte{tone.Packets[s.sent%len(tone.Packets)].Data})
		case p := <-s.session.Packets():
			s.receiveOpus(&p)
			up.listen(s.up, 0.7, 0.15, 0.3)
		case p := <-s.n.sounds:
			s.receiveSpeex(p)
			down.listen(s.down, 0.5, 0.05, 1)
		case <-end:
			t.Fatalf("%d samples came up and the tone was %+v, %d down and the tone was %+v, %d frames of the peer",
				len(s.up), up, len(s.down), down, len(s.relayed))
		}
	}
	for _, frame := range s.relayed {
		if !slices.ContainsFunc(s.peered, func(sent []byte) bool { return slices.Equal(sent, frame) }) {
			t.Fatal("the connector has a frame of the peer's that the peer did not send")
		}
	}
	if fault := s.peer.Fault(); fault != nil {
		t.Errorf("the peer: %v", fault)
	}
	sum := stop()
	if sum.Transcoding.SoundUp.P50 == nil || *sum.Transcoding.SoundUp.P50 < 2.5 ||
		sum.Transcoding.SoundDown.P50 == nil || *sum.Transcoding.SoundDown.P50 < 4.6 {
		t.Errorf("transcoding adds %+v, expected what the codecs look ahead at least", sum.Transcoding)
	}
	if n := sum.Dropped["frames_not_transcoded"] + sum.Dropped["received_frames_not_transcoded"] +
		sum.Dropped["received_audio_malformed"]; n > 0 {
		t.Errorf("dropped: %v", sum.Dropped)
	}
}

// opusName is the name of the other client's audio.
const opusName = "audio"

func openSoundTest(t *testing.T) *soundTest {
	t.Helper()
	before := goleak.IgnoreCurrent()
	settings := testbed.ConferenceConfig()
	settings.VR2Gather.Enabled, settings.VR2Gather.RequireToken, settings.VR2Gather.DefaultRoom = true, false,
		defaultRoom
	c, err := testbed.NewConference(settings, nil, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Close()
		goleak.VerifyNone(t, before)
	})
	s := &soundTest{t: t, url: c.Server.URL(), n: openNeighbour(t)}
	s.session, err = client.Join(t.Context(), client.Config{
		URL: c.Server.URL(), Room: defaultRoom, Identity: "ada-12",
		Publications: []volumetric.Publication{opus.Publication(opusName)}, Receive: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.session.Close() })
	s.peer, err = oldpeer.Dial(t.Context(), oldpeer.Config{Server: strings.TrimPrefix(c.Server.URL(), "ws://"),
		Client: 7, Tiles: 1, Qualities: 1, Addresses: "127."})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.peer.Close)
	if s.encoder, err = libspeex.NewEncoder(); err != nil {
		t.Fatal(err)
	}
	if s.speex, err = libspeex.NewDecoder(); err != nil {
		t.Fatal(err)
	}
	if s.opus, err = libopus.NewDecoder(); err != nil {
		t.Fatal(err)
	}
	return s
}

// speak sends a frame of 20 ms from the connector and one from the peer.
func (s *soundTest) speak() {
	frame := toneFrame(s.encoder, s.sent, 440)
	s.n.sendKind(s.t, volumetric.KindAudio, uint32(s.sent), frame)
	s.sent++
	if s.peer.WriteAudio(frame) == nil {
		s.peered = append(s.peered, frame)
	}
}

// receiveOpus decodes a packet that the client has received.
func (s *soundTest) receiveOpus(p *client.Packet) {
	s.t.Helper()
	if p.Track.Participant != "1" {
		return
	}
	if !p.Codec.Is(volumetric.MIMEOpus) || p.Track.Publication != audioName {
		s.t.Fatalf("%s of %v, expected Opus", p.Codec.MIMEType, p.Track)
	}
	var err error
	if s.up, err = s.opus.Decode(s.up, p.Payload); err != nil {
		s.t.Fatal(err)
	}
}

// receiveSpeex decodes a frame that the connector has received.
func (s *soundTest) receiveSpeex(p vr2gather.Packet) {
	s.t.Helper()
	var header vr2gather.FrameHeader
	data, err := header.Parse(p.Data)
	if err != nil || header.FourCC != vr2gather.CodecVoice {
		s.t.Fatalf("%v: frame of client %d begins with %+v", err, p.Client, header)
	}
	switch p.Client {
	case 7:
		s.relayed = append(s.relayed, p.Data)
	case 12:
		if off := time.Since(header.Capture()); off.Abs() > patience {
			s.t.Fatalf("captured %v ago", off)
		}
		if s.down, err = s.speex.Decode(s.down, data); err != nil {
			s.t.Fatal(err)
		}
	default:
		s.t.Fatalf("frame of client %d", p.Client)
	}
}
