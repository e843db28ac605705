package watch

import (
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pion/rtp"

	"github.com/volsfu/volsfu/cmd/volpeer/internal/choice"
	"github.com/volsfu/volsfu/cmd/volpeer/internal/decode"
	"github.com/volsfu/volsfu/internal/peer/opus"
	"github.com/volsfu/volsfu/internal/peer/save"
	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/test/wait"
)

func TestViewer(t *testing.T) {
	dir := t.TempDir()
	session := newFakeSession()
	session.stats = []client.TileStats{
		{Track: volumetric.TrackRef{TileRef: bodyTile(0)}, Packets: 10, Bytes: 1000,
			FrameCounts: client.FrameCounts{Missing: 2}},
		{Track: volumetric.TrackRef{TileRef: volumetric.TileRef{
			PublicationRef: volumetric.PublicationRef{Participant: "alice", Publication: soundName}}}, Packets: 500},
	}
	wish, err := choice.ParseWish("high")
	if err != nil {
		t.Fatal(err)
	}
	th := open(t, viewerConfig{wish: wish, sound: dir + "/out.ogg"}, session, func(v *viewer) {
		if v.writer, err = save.NewWriter(dir, v.log); err != nil {
			t.Fatal(err)
		}
	})
	session.setParticipants(alice(volumetric.ModeAlternatives))
	session.events <- client.ParticipantJoined{Participant: alice(volumetric.ModeAlternatives)}
	th.expectAsked(`[{"participant":"alice","publication":"body","quality":2}]`)
	for i := range uint16(5) {
		session.packets <- client.Packet{
			Track: volumetric.TrackRef{TileRef: volumetric.TileRef{
				PublicationRef: volumetric.PublicationRef{Participant: "alice", Publication: soundName}}},
			Codec: opus.Publication(soundName).Codec, Capture: time.Now().Add(-60 * time.Millisecond),
			Arrival: time.Now(),
			Packet:  rtp.Packet{Header: rtp.Header{SequenceNumber: i}, Payload: opus.Tone().Packets[i].Data},
		}
	}
	// Each frame is shown before the next one arrives.
	number := int64(0)
	both := func(quality volumetric.Quality) {
		number++
		th.frame(0, quality, number, 40*time.Millisecond)
		th.frame(1, quality, number, 40*time.Millisecond)
		wait.Until(t, "a saved frame", func() bool {
			written, _ := th.viewer.writer.Counts()
			return written >= number
		})
	}
	both(2)
	both(2)
	th.lines <- "quality 1 low"
	th.expectAsked(`[{"participant":"alice","publication":"body","tile":1,"quality":0}]`)
	number++
	th.frame(0, 2, number, 40*time.Millisecond)
	th.frame(1, 0, number, 40*time.Millisecond)
	wait.Until(t, "a saved frame", func() bool { written, _ := th.viewer.writer.Counts(); return written >= number })
	session.frames <- client.Frame{Track: volumetric.TrackRef{TileRef: bodyTile(0)}, Number: number + 1,
		Codec: codec.FourCC{'n', 'o', 'n', 'e'}, Data: []byte{1}}
	wait.Until(t, "a warning", func() bool { return strings.Contains(th.console.String(), "codec not available") })
	th.lines <- "nonsense"
	th.lines <- "quality best"
	th.lines <- "stats"
	th.lines <- "quit"
	if err := th.close(); err != nil {
		t.Fatal(err)
	}
	s := th.viewer.sum()
	if s.Decoded != 6 || s.Undecodable != 1 || s.Missing != 2 || s.Switches != 1 || s.Expected != 9 ||
		len(s.Publications) != 2 || s.PacketsReceived != 10 {
		t.Errorf("got %+v", s)
	}
	if s.Latency.P50 == nil || *s.Latency.P50 < 40 || s.QualityChange.P50 == nil || s.Skew.P50 == nil ||
		s.Audio.PacketsReceived != 5 {
		t.Errorf("got latency %s, change %s, skew %s, audio %+v", s.Latency.Text(), s.QualityChange.Text(),
			s.Skew.Text(), s.Audio)
	}
	if s.ECN.CE != 10 || s.ECN.CEShare != 0.25 || s.ECN.L4S != nil {
		t.Errorf("got the codepoints %+v", s.ECN)
	}
	if s.Redundancy == nil || len(s.Redundancy.Paths) != 2 || s.Redundancy.CostFactor != 1.2 {
		t.Errorf("got the paths %+v, expected two and a cost factor of 1.2", s.Redundancy)
	}
	for _, want := range []string{`cannot read command "nonsense"`, `no quality "best"`,
		"together: 6 of 9 frames decoded", "ECN: 25.00 % of 40 packets marked\n"} {
		if !strings.Contains(th.console.String(), want) {
			t.Errorf("expected the console to say %q, got\n%s", want, th.console)
		}
	}
	if recording, err := opus.Open(dir + "/out.ogg"); err != nil || len(recording.Packets) != 5 {
		t.Errorf("expected 5 packets of sound in the file, got %v", err)
	}
}

// TestViewerComingsAndGoings uses publications that end, tiles that are switched off, and frames of unknown publishers.
func TestViewerComingsAndGoings(t *testing.T) {
	session := newFakeSession(alice(volumetric.ModeAlternatives))
	th := open(t, viewerConfig{wish: choice.Auto}, session, nil)
	th.frame(0, 1, 1, 10*time.Millisecond)
	session.events <- client.Sending{Track: volumetric.TrackRef{TileRef: bodyTile(0), Quality: volumetric.QualityOff},
		Quality: volumetric.QualityOff}
	session.setParticipants()
	session.events <- client.ParticipantLeft{Identity: "alice"}
	th.frame(1, 1, 2, 10*time.Millisecond)
	session.setParticipants(alice(volumetric.ModeDescriptions))
	session.events <- client.Resumed{}
	th.lines <- "quality 0,2"
	th.expectAsked(`[{"participant":"alice","publication":"body","quality":[0,2]}]`)
	th.frame(0, 0, 7, 10*time.Millisecond)
	th.frame(0, 2, 7, 10*time.Millisecond)
	session.err = errors.New("gone")
	wait.Until(t, "all frames to be taken", func() bool { return len(session.frames) == 0 })
	close(session.done)
	if err := <-th.ended; !errors.Is(err, session.err) {
		t.Errorf("expected the session's error, got %v", err)
	}
	th.ended <- nil
	if err := th.close(); err != nil {
		t.Fatal(err)
	}
	if s := th.viewer.sum(); s.Decoded+s.Skipped != 4 {
		t.Errorf("expected 4 frames decoded or skipped at the end, got %d and %d", s.Decoded, s.Skipped)
	}
}

// TestDescriptionsComeAndGo checks that a tile is on while any description of the tile is sent, or is about to replace
// the last one.
func TestDescriptionsComeAndGo(t *testing.T) {
	session := newFakeSession(alice(volumetric.ModeDescriptions))
	v := newViewer(viewerConfig{wish: choice.Auto}, &console{}, slog.New(slog.DiscardHandler))
	v.session = session
	v.compare()
	sending := func(description, quality volumetric.Quality) {
		v.sending(&client.Sending{Track: volumetric.TrackRef{TileRef: bodyTile(0), Quality: description},
			Quality: quality})
	}
	ask := func(qualities ...volumetric.Quality) {
		tile := 0
		v.requests.ask([]signal.Choice{{PublicationRef: bodyTile(0).PublicationRef, Tile: &tile,
			Quality: signal.Selection{Qualities: qualities}}})
	}
	frame := func(description volumetric.Quality, number int64) {
		now := time.Now()
		v.result(&decode.Result{Decoded: now, Frame: client.Frame{
			Track: volumetric.TrackRef{TileRef: bodyTile(0), Quality: description}, Number: number, Capture: now,
			First: now, Complete: now,
		}})
	}
	// One frame number in an hour is almost no frames per second, if the tile was on all the time.
	on := func() bool { return v.book.Sum(nil, time.Now().Add(time.Hour)).FPS < 1 }
	expect := func(what string, want bool, switches int64) {
		t.Helper()
		if s := v.book.Sum(nil, time.Now()); on() != want || s.Switches != switches {
			t.Errorf("%s: expected the tile to be on %v after %d switches, got %v after %d", what, want, switches, on(),
				s.Switches)
		}
	}
	sending(0, 0)
	sending(1, 1)
	frame(0, 1)
	frame(1, 1)
	expect("both descriptions came", true, 0)
	sending(1, 1)
	expect("told twice", true, 0)
	sending(0, volumetric.QualityOff)
	expect("one remains", true, 1)
	ask(2)
	sending(1, volumetric.QualityOff)
	expect("another one is asked for", true, 2)
	frame(2, 2)
	sending(2, 2)
	expect("the other one came", true, 3)
	ask()
	sending(2, volumetric.QualityOff)
	expect("none is sent", false, 4)
	ask(2)
	again := volumetric.TrackRef{TileRef: bodyTile(0), Quality: 2}
	if !v.requests.tracker.Pending(again) {
		t.Error("expected the request to be measured again, since the description was off")
	}
	sending(2, 2)
	frame(2, 3)
	expect("on again", true, 5)
	if v.requests.tracker.Pending(again) {
		t.Error("expected the frame to fulfil the request")
	}
}

func TestRequestsThatAreRefused(t *testing.T) {
	session := newFakeSession(alice(volumetric.ModeAlternatives))
	session.refuse = &signal.Error{Code: signal.CodeUnauthorized, Message: "no"}
	th := open(t, viewerConfig{wish: choice.Auto}, session, nil)
	th.lines <- "quality low"
	<-session.asked
	wait.Until(t, "a warning", func() bool { return strings.Contains(th.console.String(), "refused the choice") })
	// A frame of the refused quality fulfils no request.
	th.frame(0, 0, 1, 0)
	wait.Until(t, "the frame to be taken", func() bool { return len(session.frames) == 0 })
	if err := th.close(); err != nil {
		t.Fatal(err)
	}
	if s := th.viewer.sum(); s.QualityChange.P50 != nil {
		t.Errorf("expected no quality change, got %s ms", s.QualityChange.Text())
	}
}

// TestSwitchAtRandom checks that every tile gets another quality each time, and the same qualities for the same seed.
func TestSwitchAtRandom(t *testing.T) {
	play := func(mode volumetric.Mode, seed uint64) (all [][]signal.Choice) {
		session := newFakeSession(alice(mode))
		th := open(t, viewerConfig{wish: choice.Auto, switchEvery: time.Millisecond, seed: seed}, session, nil)
		for range 20 {
			all = append(all, <-session.asked)
		}
		if err := th.close(); err != nil {
			t.Fatal(err)
		}
		return all
	}
	for _, mode := range []volumetric.Mode{volumetric.ModeAlternatives, volumetric.ModeDescriptions} {
		all := play(mode, 1)
		for i, choices := range all {
			for tile, c := range choices {
				if len(choices) != 2 || *c.Tile != tile || c.Quality.Auto || len(c.Quality.Qualities) == 0 {
					t.Fatalf("%s: got choices %+v", mode, choices)
				}
				if i > 0 && slices.Equal(c.Quality.Qualities, all[i-1][tile].Quality.Qualities) {
					t.Errorf("%s: tile %d keeps %v", mode, tile, c.Quality.Qualities)
				}
			}
		}
		text := func(v [][]signal.Choice) string { data, _ := json.Marshal(v); return string(data) }
		if text(all) != text(play(mode, 1)) || text(all) == text(play(mode, 2)) {
			t.Errorf("%s: expected the seed to choose the qualities", mode)
		}
	}
}
