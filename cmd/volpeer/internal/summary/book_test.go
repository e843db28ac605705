package summary

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/peer/distribution"
	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/e2ee"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

var update = flag.Bool("update", false, "rewrite the golden file")

func at(ms int) time.Time { return time.Unix(1000, 0).Add(time.Duration(ms) * time.Millisecond) }

func tileRef(participant string, tile int) volumetric.TileRef {
	return volumetric.TileRef{PublicationRef: volumetric.PublicationRef{Participant: participant, Publication: "body"},
		Tile: tile}
}

// evening is ten seconds of alice with two tiles, the second one off for five of them, and of bob with one of two
// descriptions.
func evening() (*Book, []client.TileStats) {
	b := NewBook()
	for frame := range 300 {
		capture := at(frame * 100 / 3)
		b.Decoded(tileRef("alice", 0), int64(frame), capture, capture.Add(time.Duration(40+frame/100)*time.Millisecond))
		if frame < 150 {
			b.Decoded(tileRef("alice", 1), int64(frame), capture, capture.Add(45*time.Millisecond))
		}
		b.Skew(tileRef("alice", 0).PublicationRef, time.Duration(frame%3-1)*time.Millisecond)
	}
	b.Off(tileRef("alice", 1), at(5040))
	b.Bandwidth(client.Bandwidth{Estimate: 30_000_000, Allocated: 20_000_000, L4S: "marked"})
	// A frame that was under way when the tile was switched off does not switch it on.
	b.Decoded(tileRef("alice", 1), 150, at(5030), at(5070))
	b.Failed(tileRef("alice", 0))
	b.Skipped(tileRef("alice", 0), 2)
	b.Held(tileRef("alice", 1), 1)
	b.Switched(tileRef("alice", 0))
	b.Changed(tileRef("alice", 0), 60*time.Millisecond)
	for i := range 300 {
		b.Decoded(tileRef("bob", 0), int64(i/2), time.Time{}, at(40+i*100/3))
		if i%100 != 7 {
			b.Sound(volumetric.PublicationRef{Participant: "bob", Publication: "voice"}, uint16(65400+i), at(20*i))
		}
	}
	return b, []client.TileStats{
		{
			Track: volumetric.TrackRef{TileRef: tileRef("alice", 0), Quality: volumetric.QualityOff},
			FrameCounts: client.FrameCounts{Expected: 310, Complete: 304, Undecodable: 3, Missing: 2, Overflowed: 1,
				DroppedByServer: 1, Refused: 2},
			Packets: 5000, Bytes: 5_000_000, Lost: 12, Recovered: 10, Requests: 15,
		},
		{Track: volumetric.TrackRef{TileRef: tileRef("alice", 1), Quality: volumetric.QualityOff}, Packets: 100,
			Bytes: 100_000},
		{Track: volumetric.TrackRef{TileRef: tileRef("bob", 0), Quality: 0}, Packets: 10, Bytes: 10_000,
			FrameCounts: client.FrameCounts{Missing: 1}},
		{Track: volumetric.TrackRef{TileRef: tileRef("bob", 0), Quality: 1}, Packets: 20, Bytes: 20_000,
			FrameCounts: client.FrameCounts{Missing: 2}},
		{Track: volumetric.TrackRef{TileRef: tileRef("carol", 0), Quality: volumetric.QualityOff},
			FrameCounts: client.FrameCounts{Undecodable: 4}, Packets: 4, Bytes: 400},
	}
}

// TestGolden compares the whole object with testdata/summary.json, whose keys are a contract.
func TestGolden(t *testing.T) {
	b, stats := evening()
	sum := b.Sum(stats, at(10040))
	ms := 12.5
	drawing := distribution.Percentiles{P50: &ms, P95: &ms, P99: &ms, Max: &ms}
	sum.ECN.Count(client.ECNCounts{NotECT: 10, ECT1: 4900, CE: 100})
	sum.CountPaths(client.RedundancyStats{Received: []client.PathCounts{
		{First: 4800, Repeated: 100, Only: 3700}, {First: 200, Repeated: 1100, Only: 100},
	}})
	sum.Encryption = client.EncryptionStats{Opened: 304, Refused: e2ee.Refusals{Altered: 2}}
	sum.Render = &Render{Drawn: 300, Superseded: 1, Wait: drawing, Draw: drawing, Latency: drawing, Pictures: 10}
	sum.Pictures = []Picture{{Participant: "bob", Publication: "webcam", Quality: 1, Switches: 2, Frames: 300,
		KeyFrames: 4, Undecodable: 1, LongestGap: 66.5, FPS: 29.9, Bitrate: 500_000}}
	got, err := json.MarshalIndent(sum, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	got = append(got, '\n')
	const name = "testdata/summary.json"
	if *update {
		if err := os.WriteFile(name, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("expected %s, got\n%s", name, got)
	}
}

func TestSumsAddUp(t *testing.T) {
	b, stats := evening()
	s := b.Sum(stats, at(10040))
	for _, f := range append([]Tile{{Figures: s.Figures}}, s.Publications...) {
		if sum := f.Decoded + f.Undecodable + f.Missing + f.Skipped + f.DroppedByServer + f.Refused; f.Expected != sum {
			t.Errorf("%s tile %d: %d frames expected, but the parts make %d", f.Participant, f.Tile, f.Expected, sum)
		}
	}
	if s.Decoded != 751 || b.Shots(tileRef("alice", 0).PublicationRef) != 451 || s.Undecodable != 3+1+4 ||
		s.Missing != 5 || s.Skipped != 3 {
		t.Errorf("got %+v", s.Figures)
	}
	// 300 frames in ten seconds, 151 in 4.995, two descriptions of 150 in ten, none.
	for i, want := range []float64{30, 30.23, 15, 0} {
		if got := s.Publications[i].FPS; got < want-0.01 || got > want+0.01 {
			t.Errorf("tile %d of %s has %g frames per second, expected %g", s.Publications[i].Tile,
				s.Publications[i].Participant, got, want)
		}
	}
	if s.Audio != (Audio{PacketsReceived: 297, PacketsLost: 3, LongestGap: 40}) {
		t.Errorf("got audio %+v, expected 297 received, 3 lost and a gap of 40 ms", s.Audio)
	}
}

// TestOffBeforeItsFirstFrame checks that a frame captured before its tile was switched off does not switch the tile on,
// even if it is the first decoded frame.
func TestOffBeforeItsFirstFrame(t *testing.T) {
	b := NewBook()
	tile := tileRef("alice", 0)
	b.Off(tile, at(100))
	b.Decoded(tile, 1, at(90), at(130))
	if got := b.Sum(nil, at(5000)).Publications[0]; got.FPS != 0 || got.Decoded != 1 {
		t.Errorf("got %g frames per second of %d decoded, want 0: it was never on", got.FPS, got.Decoded)
	}
	b.Decoded(tile, 2, at(4000), at(4100))
	if got := b.Sum(nil, at(5100)).Publications[0]; got.FPS != 2 {
		t.Errorf("got %g frames per second, want both within the one second that it was on", got.FPS)
	}
}

// TestEmpty checks that the object has every key even if nothing was received.
func TestEmpty(t *testing.T) {
	empty, err := json.Marshal(NewBook().Sum(nil, at(0)))
	if err != nil {
		t.Fatal(err)
	}
	var got, full map[string]any
	if err := json.Unmarshal(empty, &got); err != nil {
		t.Fatal(err)
	}
	golden, err := os.ReadFile("testdata/summary.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(golden, &full); err != nil {
		t.Fatal(err)
	}
	for key := range full {
		if _, ok := got[key]; !ok {
			t.Errorf("key %q is missing", key)
		}
	}
	want := strings.Fields(`
		frames_expected frames_decoded frames_undecodable frames_missing frames_skipped frames_dropped_by_server
		frames_refused tiles_held switches latency_ms fps bitrate_bps packets_received packets_lost nacks_sent
		packets_recovered
		quality_change_latency_ms av_skew_ms audio estimate_bps allocated_bps ecn redundancy render layers
		encryption publications pictures`)
	contract := make(map[string]bool)
	for _, key := range want {
		contract[key] = true
	}
	keys := make(map[string]bool)
	for key := range got {
		keys[key] = true
	}
	if !reflect.DeepEqual(keys, contract) {
		t.Errorf("expected the keys %v, got %v", contract, keys)
	}
}

func TestSoundCounter(t *testing.T) {
	tests := []struct {
		name      string
		sequences []uint16
		want      soundCounts
	}{
		{"in order over the wrap", []uint16{65534, 65535, 0, 1}, soundCounts{4, 0}},
		{"one lost", []uint16{10, 12}, soundCounts{2, 1}},
		{"out of order from the first", []uint16{11, 10, 12}, soundCounts{3, 0}},
		{"another sound", []uint16{10, 12, 30000, 30001, 30003}, soundCounts{5, 2}},
	}
	for _, test := range tests {
		var c soundCounter
		for _, s := range test.sequences {
			c.count(s, at(0))
		}
		if got := c.counts(); got != test.want {
			t.Errorf("%s: expected %+v, got %+v", test.name, test.want, got)
		}
	}
}

func TestShotCounter(t *testing.T) {
	tests := []struct {
		numbers []int64
		want    int64
	}{
		{[]int64{0, 1, 2}, 3},
		{[]int64{5, 5, 7, 6, 6, 5, 7}, 3},
		{[]int64{0, 63, 0, 64, 1}, 4},
		{[]int64{1000, 1, 2, 1}, 3},
		{[]int64{1, 500, 500}, 2},
	}
	for _, test := range tests {
		var c shotCounter
		for _, n := range test.numbers {
			c.count(n)
		}
		if c.shots != test.want {
			t.Errorf("%v: expected %d, got %d", test.numbers, test.want, c.shots)
		}
	}
}
