package playback

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/volsfu/volsfu/internal/peer"
	"github.com/volsfu/volsfu/internal/peer/opus"
	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/recording"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/test/testbed"
	"github.com/volsfu/volsfu/test/wait"
)

// conference starts a server that records rooms into the folder that is returned.
func conference(t *testing.T, qualities recording.Qualities) (*testbed.Conference, string) {
	t.Helper()
	c := testbed.ConferenceConfig()
	c.Recordings.Directory, c.Recordings.Automatic, c.Recordings.MinFree = t.TempDir(), string(qualities), 0
	company, err := testbed.NewConference(c, nil, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(company.Close)
	return company, c.Recordings.Directory
}

// body is a publication of two tiles at two qualities.
func body() volumetric.Publication {
	return volumetric.Publication{
		Name: "body", Kind: volumetric.KindVideo, Mode: volumetric.ModeAlternatives, FrameRate: 30,
		Codec: volumetric.Codec{MIMEType: volumetric.MIMEVolumetric, ClockRate: 90000},
		Tiles: make([]volumetric.Tile, 2), Qualities: make([]volumetric.QualityLevel, 2),
	}
}

// enter joins a room and waits until media flows.
func enter(t *testing.T, company *testbed.Conference, room, identity string, publications ...volumetric.Publication,
) *client.Session {
	t.Helper()
	s, err := client.Join(t.Context(), client.Config{
		URL: company.Server.URL(), Room: room, Identity: identity, Publications: publications,
		MinUplink: testbed.Everything,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	for e := range s.Events() {
		if _, ok := e.(client.Connected); ok {
			go func() {
				for range s.Events() {
				}
			}()
			return s
		}
	}
	t.Fatal("the session ended before media flowed")
	return nil
}

// content are the frames and packets of a recording by name, and its messages in order.
type content struct {
	frames   map[string]string
	voice    []string
	messages []string
	ended    bool
	lost     recording.Lost
}

// contentOf reads a recording.
func contentOf(t *testing.T, path string) content {
	t.Helper()
	c := content{frames: make(map[string]string)}
	r, err := recording.Open(path)
	if errors.Is(err, recording.ErrNone) || errors.Is(err, os.ErrNotExist) || errors.Is(err, recording.ErrFormat) {
		return c
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	names := make(map[uint32]string)
	for {
		next, err := r.Next()
		if errors.Is(err, io.EOF) {
			return c
		}
		if err != nil {
			t.Fatal(err)
		}
		switch next := next.(type) {
		case *recording.Publication:
			names[next.ID] = next.Ref().String()
		case *recording.Frame:
			name := fmt.Sprintf("%s tile %d quality %d number %d", names[next.Publication], next.Tile, next.Quality,
				next.Number)
			if c.frames[name] != "" {
				t.Errorf("%s is recorded twice", name)
			}
			c.frames[name] = fmt.Sprintf("%v %s %x %x", next.Prefixed, next.Codec, next.Capture, next.Data)
		case *recording.Unit:
			c.voice = append(c.voice, fmt.Sprintf("%s %x", names[next.Publication], next.Payloads))
		case *recording.Message:
			c.messages = append(c.messages, string(next.Text))
		case *recording.Lost:
			c.lost = *next
		case *recording.End:
			c.ended = !next.Continues
		}
	}
}

// complete waits until a recording has ended and returns its content.
func complete(t *testing.T, path string) (c content) {
	t.Helper()
	wait.Until(t, "the recording has ended", func() bool {
		c = contentOf(t, path)
		return c.ended
	})
	return c
}

// starved is the stall of the machine above which frames may be lost. A frame whose packets do not arrive, or are not
// read, within a second is given up, and a repair takes up to four wake-ups of the programs: 250 ms each, and less if
// stalls follow each other.
const starved = 100 * time.Millisecond

// equalFrames compares two recordings. Every frame must be equal. If the machine has starved the programs, frames may
// be missing.
func equalFrames(t *testing.T, stalls *wait.Stalls, what string, got, want map[string]string) {
	t.Helper()
	for name := range got {
		if got[name] != want[name] {
			t.Errorf("%s: %s has %.60s, expected %.60s", what, name, got[name], want[name])
		}
	}
	missing := len(want) - len(got)
	if missing > 0 && (stalls.Longest() < starved || len(got) == 0) {
		t.Errorf("%s: %d frames, expected %d; the machine was late by up to %v", what, len(got), len(want),
			stalls.Longest())
	}
}

// equalVoice compares the packets of audio in two recordings as equalFrames compares frames.
func equalVoice(t *testing.T, stalls *wait.Stalls, what string, got, want []string) {
	t.Helper()
	missing := len(want) - len(got)
	for _, packet := range got {
		at := slices.Index(want, packet)
		if at < 0 {
			t.Errorf("%s: unexpected or repeated packet %.60s", what, packet)
			return
		}
		want = want[at+1:]
	}
	if missing > 0 && (stalls.Longest() < starved || len(got) == 0) {
		t.Errorf("%s: %d packets of audio, %d are missing; the machine was late by up to %v", what, len(got), missing,
			stalls.Longest())
	}
}

// settled is the time after the last recorded frame after which no frame follows: a frame is given up after a second,
// and written 250 ms later.
const settled = 3 * time.Second

// perform publishes frames of random content and the packets of a tone in a room for a second, until that number of
// frames is recorded in the folder, or as many as a starved machine records. perform returns the frames and the packets
// of audio that were sent.
func perform(t *testing.T, stalls *wait.Stalls, company *testbed.Conference, dir, room string, frames int,
) (sent map[string]string, spoken []string) {
	t.Helper()
	alice := enter(t, company, room, "alice", body())
	bob := enter(t, company, room, "bob/../mallory", opus.Publication("voice"))
	carol, err := client.Join(t.Context(), client.Config{URL: company.Server.URL(), Room: room, Identity: "carol"})
	if err != nil {
		t.Fatal(err)
	}
	publisher, voice := alice.Publisher("body"), bob.Publisher("voice")
	publisher.SetPose(client.Pose{Position: [3]float64{1, 2, 3}})
	converse(t, alice, bob)
	random := rand.NewChaCha8([32]byte{28})
	tone, began := opus.Tone(), time.Now()
	sent = make(map[string]string)
	for number := range uint32(40) {
		at := began.Add(time.Duration(number) * 20 * time.Millisecond)
		if !peer.SleepUntil(t.Context(), at) {
			t.Fatal(t.Context().Err())
		}
		if taken, err := voice.WritePackets(0, 0, at, [][]byte{tone.Packets[number].Data}); err != nil || !taken {
			t.Fatalf("packet %d of audio: taken %v, %v", number, taken, err)
		}
		spoken = append(spoken, fmt.Sprintf("bob/../mallory/voice %x", [][]byte{tone.Packets[number].Data}))
		for tile := range 2 {
			for q := range volumetric.Quality(2) {
				data := make([]byte, 3000+1000*int(q)+int(number))
				_, _ = random.Read(data)
				frame := client.OutgoingFrame{
					Number: 1<<32 - 10 + number, Capture: at, Codec: volumetric.FourCC{'t', 'e', 's', 't'}, Data: data,
					Stamp: 0xeeaae5f840000001 + uint64(number)<<24,
				}
				if taken, err := publisher.WriteFrame(tile, q, frame); err != nil || !taken {
					t.Fatalf("frame %d: taken %v, %v", number, taken, err)
				}
				sent[fmt.Sprintf("alice/body tile %d quality %d number %d", tile, q, frame.Number)] =
					fmt.Sprintf("true test %x %x", frame.Stamp, data)
			}
		}
	}
	var recorded, grown int
	var since time.Time
	wait.Until(t, "everything is recorded", func() bool {
		c := contentOf(t, filepath.Join(dir, room))
		if recorded = len(c.frames) + len(c.voice); recorded > grown {
			grown, since = recorded, time.Now()
		}
		return recorded == frames+len(spoken) || stalls.Longest() >= starved && time.Since(since) > settled
	})
	_ = alice.Close()
	_ = bob.Close()
	_ = carol.Close()
	return sent, spoken
}

// converse changes attributes and sends messages.
func converse(t *testing.T, alice, bob *client.Session) {
	t.Helper()
	for _, change := range []map[string]string{{"name": "Alice", "role": "host"}, {"role": "", "hand": "up"}} {
		if err := alice.SetAttributes(t.Context(), "", change); err != nil {
			t.Fatal(err)
		}
	}
	for _, d := range []client.Data{
		{Topic: "chat", Text: "hello"}, {Topic: "chat", Text: "again"}, {Binary: []byte{0, 255}},
	} {
		if err := bob.SendData(t.Context(), d); err != nil {
			t.Fatal(err)
		}
	}
}

// talk returns the changes of attributes and then the data messages, each in order. Each kind is of one participant;
// two participants have connections of their own.
func (c *content) talk(t *testing.T) []string {
	t.Helper()
	var attributes, data []string
	for _, text := range c.messages {
		m, err := signal.DecodeFromServer([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		switch m.(type) {
		case *signal.Attributes:
			attributes = append(attributes, text)
		case *signal.Data:
			data = append(data, text)
		}
	}
	return append(attributes, data...)
}

// TestRecordingAndReplayAreByteExact records a room, replays the recording into a room that is recorded as well, and
// compares both recordings with the frames that were published.
func TestRecordingAndReplayAreByteExact(t *testing.T) {
	company, dir := conference(t, recording.All)
	stalls := wait.WatchStalls(t)
	sent, spoken := perform(t, stalls, company, dir, "stage", 160)
	first := complete(t, filepath.Join(dir, "stage"))
	equalFrames(t, stalls, "the recording", first.frames, sent)
	equalVoice(t, stalls, "the recording", first.voice, spoken)
	if first.lost.Total() != 0 && stalls.Longest() < starved {
		t.Errorf("the recording has lost %+v", first.lost)
	}

	var out strings.Builder
	command := Command()
	command.SetArgs([]string{filepath.Join(dir, "stage"), "--server", company.Server.URL(), "--room", "again",
		"--keep-times", "--max-bitrate", "1Gbit", "--json"})
	command.SetOut(&out)
	command.SetErr(io.Discard)
	if err := command.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	var counts Counts
	if err := json.Unmarshal([]byte(out.String()), &counts); err != nil {
		t.Fatal(err)
	}
	left := counts.Unsent + counts.Unwanted
	if counts.Participants != 3 || counts.Publications != 2 || counts.Repeated != 0 ||
		left != 0 && stalls.Longest() < starved || counts.Damage != (recording.Damage{}) {
		t.Errorf("the replay counts %+v", counts)
	}
	second := complete(t, filepath.Join(dir, "again"))
	equalFrames(t, stalls, "the recording of the replay", second.frames, first.frames)
	equalVoice(t, stalls, "the recording of the replay", second.voice, first.voice)
	if got, want := second.talk(t), first.talk(t); !slices.Equal(got, want) || counts.Messages != 3 ||
		counts.MessagesUnsent != 0 {
		t.Errorf("the replay has the messages %q, expected %q", got, want)
	}
	for _, c := range []content{first, second} {
		kinds := make(map[signal.Type]int)
		for _, text := range c.messages {
			m, err := signal.DecodeFromServer([]byte(text))
			if err != nil {
				t.Fatal(err)
			}
			kinds[m.Head().Type]++
		}
		want := map[signal.Type]int{signal.TypeParticipantJoined: 3, signal.TypeParticipantLeft: 3,
			signal.TypeUnpublished: 2, signal.TypePose: 1, signal.TypeAttributes: 2, signal.TypeData: 3}
		if !maps.Equal(kinds, want) {
			t.Errorf("messages %v, expected %v", kinds, want)
		}
	}
}

// TestBestQualities checks that a recording of the best qualities has only them, and that their replay has one quality.
func TestBestQualities(t *testing.T) {
	company, dir := conference(t, recording.Best)
	stalls := wait.WatchStalls(t)
	sent, _ := perform(t, stalls, company, dir, "stage", 80)
	best := make(map[string]string)
	for name, data := range sent {
		if strings.Contains(name, "quality 1") {
			best[name] = data
		}
	}
	recorded := complete(t, filepath.Join(dir, "stage")).frames
	equalFrames(t, stalls, "the recording", recorded, best)
	reader, err := recording.Open(filepath.Join(dir, "stage"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = reader.Close() }()
	log := slog.New(slog.DiscardHandler)
	s := newStage(reader, log, func(identity string) *performer {
		return newPerformer(identity, log, func(ctx context.Context, list []volumetric.Publication,
		) (*client.Session, error) {
			return client.Join(ctx, client.Config{URL: company.Server.URL(), Room: "again", Identity: identity,
				Publications: list, MinUplink: testbed.Everything})
		})
	})
	s.speed, s.keepTimes = 2, true
	if err := s.play(t.Context()); err != nil {
		t.Fatal(err)
	}
	again := make(map[string]string)
	for name, data := range recorded {
		again[strings.Replace(name, "quality 1", "quality 0", 1)] = data
	}
	equalFrames(t, stalls, "the recording of the replay", complete(t, filepath.Join(dir, "again")).frames, again)
}
