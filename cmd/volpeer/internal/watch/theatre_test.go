package watch

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/volsfu/volsfu/cmd/volpeer/internal/decode"
	"github.com/volsfu/volsfu/internal/peer/opus"
	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/pointcloud"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// soundName is the name of the audio publication of alice.
const soundName = "audio"

// fakeSession is a session without a server, whose events come from the test. It records requests.
type fakeSession struct {
	events  chan client.Event
	frames  chan client.Frame
	packets chan client.Packet
	done    chan struct{}
	err     error
	refuse  error
	asked   chan []signal.Choice

	mu           sync.Mutex
	participants []signal.Participant
	stats        []client.TileStats
}

func newFakeSession(participants ...signal.Participant) *fakeSession {
	return &fakeSession{
		events:       make(chan client.Event, 100),
		frames:       make(chan client.Frame, 100),
		packets:      make(chan client.Packet, 100),
		done:         make(chan struct{}),
		asked:        make(chan []signal.Choice, 100),
		participants: participants,
	}
}

func (s *fakeSession) RequestKeyFrame(volumetric.TileRef) error { return nil }

func (s *fakeSession) Events() <-chan client.Event      { return s.events }
func (s *fakeSession) Frames() <-chan client.Frame      { return s.frames }
func (s *fakeSession) Packets() <-chan client.Packet    { return s.packets }
func (s *fakeSession) ServerTime(t time.Time) time.Time { return t }
func (s *fakeSession) Done() <-chan struct{}            { return s.done }
func (s *fakeSession) Err() error                       { return s.err }
func (s *fakeSession) Stats() []client.TileStats        { return s.stats }
func (s *fakeSession) ECN() client.ECNCounts            { return client.ECNCounts{ECT1: 30, CE: 10} }

func (s *fakeSession) Encryption() client.EncryptionStats { return client.EncryptionStats{} }

func (s *fakeSession) Redundancy() client.RedundancyStats {
	return client.RedundancyStats{Received: []client.PathCounts{
		{First: 90, Repeated: 5, Only: 75}, {First: 10, Repeated: 15, Only: 5},
	}}
}

func (s *fakeSession) setParticipants(p ...signal.Participant) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.participants = p
}

func (s *fakeSession) Participants() []signal.Participant {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.participants
}

func (s *fakeSession) SetQuality(_ context.Context, choices ...signal.Choice) error {
	s.asked <- choices
	return s.refuse
}

// alice publishes a body of two tiles at three qualities, and sound.
func alice(mode volumetric.Mode) signal.Participant {
	return signal.Participant{Identity: "alice", Publications: []volumetric.Publication{
		{
			Name: "body", Kind: volumetric.KindVideo, Mode: mode, FrameRate: 30,
			Codec:     volumetric.Codec{MIMEType: volumetric.MIMEVolumetric, ClockRate: 90000},
			Tiles:     make([]volumetric.Tile, 2),
			Qualities: []volumetric.QualityLevel{{Name: "low"}, {Name: "mid"}, {Name: "high"}},
		},
		opus.Publication(soundName),
	}}
}

// console is a standard error that a test reads while it is written.
type console struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (c *console) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.buffer.Write(p)
}

func (c *console) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.buffer.String()
}

// theatre is a viewer that runs on a fake session.
type theatre struct {
	t       *testing.T
	viewer  *viewer
	session *fakeSession
	lines   chan string
	console *console
	ended   chan error
	cancel  context.CancelFunc
	encoder codec.Encoder
}

func open(t *testing.T, config viewerConfig, session *fakeSession, prepare func(*viewer)) *theatre {
	c := &console{}
	log := slog.New(slog.NewTextHandler(c, nil))
	v := newViewer(config, c, log)
	if prepare != nil {
		prepare(v)
	}
	v.pool = decode.NewPool(2, v.writer != nil || v.screen != nil)
	ctx, cancel := context.WithCancel(t.Context())
	th := &theatre{t, v, session, make(chan string), c, make(chan error, 1), cancel, codec.Raw.NewEncoder()}
	go func() { th.ended <- v.run(ctx, session, th.lines) }()
	return th
}

// close ends the viewer and returns its error.
func (th *theatre) close() error {
	th.cancel()
	err := <-th.ended
	th.viewer.close()
	return err
}

// frame delivers a frame with the given age, and waits until the viewer has taken the frame.
func (th *theatre) frame(tile int, quality volumetric.Quality, number int64, ago time.Duration) {
	th.t.Helper()
	var cloud pointcloud.Cloud
	cloud.Append([3]float32{float32(tile), 0, 0}, [3]uint8{uint8(number), 0, 0})
	box := volumetric.BoundingBox{Max: [3]float32{2, 2, 2}}
	data, err := th.encoder.Encode(nil, &cloud, codec.Params{PositionBits: 10, Box: box})
	if err != nil {
		th.t.Fatal(err)
	}
	now := time.Now()
	th.session.frames <- client.Frame{
		Track:  volumetric.TrackRef{TileRef: bodyTile(tile), Quality: quality},
		Number: number, Codec: codec.Raw.FourCC(), Data: data,
		Capture: now.Add(-ago), First: now.Add(-ago), Complete: now,
	}
}

func bodyTile(tile int) volumetric.TileRef {
	return volumetric.TileRef{PublicationRef: volumetric.PublicationRef{Participant: "alice", Publication: "body"},
		Tile: tile}
}

func (th *theatre) expectAsked(want string) {
	th.t.Helper()
	choices := <-th.session.asked
	data, err := json.Marshal(choices)
	if err != nil || string(data) != want {
		th.t.Errorf("expected the request %s, got %s, %v", want, data, err)
	}
}
