package signal

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// TestMessagesAreBoundedBeforeTheyAreMade sends messages that are short as JSON and large in
// memory.
func TestMessagesAreBoundedBeforeTheyAreMade(t *testing.T) {
	filled := func(begin, entry, end string, size int) []byte {
		return []byte(
			begin + strings.Repeat(entry+",", (size-len(begin)-len(end)-len(entry))/(len(entry)+1)) + entry + end,
		)
	}
	const within, beyond = 100 << 10, 520 << 10
	for _, test := range []struct {
		name string
		data []byte
		want error
	}{
		{"publications", filled(`{"type":"join","publications":[`, "{}", "]}", within), ErrInvalid},
		{"more publications", filled(`{"type":"join","publications":[`, "{}", "]}", beyond), ErrTooLarge},
		{"tiles", filled(`{"type":"publish","publication":{"tiles":[`, "{}", "]}}", within), ErrInvalid},
		{"choices", filled(`{"type":"set_quality","choices":[`, `{"quality":0}`, "]}", within), ErrInvalid},
		{"qualities", filled(`{"type":"set_quality","choices":[{"quality":[`, "0", "]}]}", within), ErrInvalid},
		{"slots", filled(`{"type":"acknowledge","slots":[`, "{}", "]}", within), ErrInvalid},
		{"frames", filled(`{"type":"frame_times","tracks":[{"frames":[`, "[]", "]}]}", within), ErrInvalid},
		{"boxes", filled(`{"type":"pose","boxes":[`, "{}", "]}", within), ErrInvalid},
		{"objects", filled(`{"type":"arrange","objects":[`, "{}", "]}", within), ErrInvalid},
		{"a long leave", filled(`{"type":"leave","why":[`, "0", "]}", within), ErrTooLarge},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		m, err := DecodeFromClient(test.data)
		runtime.ReadMemStats(&after)
		if !errors.Is(err, test.want) || m == nil {
			t.Errorf("%s: a %T, error %v, expected one around %q and a header", test.name, m, err, test.want)
		}
		if made := after.TotalAlloc - before.TotalAlloc; made > 64<<10 {
			t.Errorf("%s: %d bytes of JSON became %d", test.name, len(test.data), made)
		}
	}
}

// TestLongHonestMessagesAreTaken sends the longest messages that clients need. Only their lists and
// descriptions are a quarter of the longest.
func TestLongHonestMessagesAreTaken(t *testing.T) {
	const share = 4
	name := func(length int) string { return strings.Repeat("n", length) }
	large := func(n, tiles int) volumetric.Publication {
		p := body()
		p.Name, p.Codec.Format, p.Tiles = fmt.Sprint("object ", n), name(MaxFormatLength), nil
		for range tiles {
			box := volumetric.BoundingBox{
				Min: [3]float32{-1.2345678, -0.12345678, -2.3456789},
				Max: [3]float32{1.2345678, 0.12345678, 2.3456789},
			}
			p.Tiles = append(p.Tiles, volumetric.Tile{Label: name(volumetric.MaxNameLength), Box: box})
		}
		return p
	}
	join, choices, known := &Join{Version: Version}, &SetQuality{}, &Acknowledge{}
	for n := range 8 / share {
		join.Publications = append(join.Publications, large(n, 64))
	}
	ref := volumetric.PublicationRef{Participant: name(80), Publication: name(80)}
	for i := range MaxChoices / share {
		tile := i % volumetric.MaxTiles
		choices.Choices = append(choices.Choices, Choice{PublicationRef: ref, Tile: &tile, Quality: Only(63)})
		known.Slots = append(known.Slots, SlotGeneration{MID: fmt.Sprint(i), Generation: math.MaxUint32})
	}
	pose, arrange := &Pose{Publication: "body", Orientation: Rotation{0, 0, 0, 1}}, &Arrange{}
	for range volumetric.MaxTiles / share {
		pose.Boxes = append(pose.Boxes, large(0, 1).Tiles[0].Box)
	}
	for range MaxPlacements / share {
		place := Vector{-1.2345678901234567, 1.2345678901234567, -0.012345678901234567}
		arrange.Objects = append(
			arrange.Objects,
			Placement{
				PublicationRef: ref,
				Position:       place,
				Orientation:    Rotation{0, 0, 0, 1},
				Scale:          1.2345678901234567,
			},
		)
	}
	uplink := &Uplink{Estimate: 1}
	for range MaxGaveUp / share {
		uplink.GaveUp = append(uplink.GaveUp, OwnTrack{Publication: name(64), Tile: 255, Quality: 63})
	}
	times := &FrameTimes{
		Host:   FrameHostSender,
		Clock:  HostClock{Source: ClockPTP},
		Tracks: []TrackTimes{{Publication: name(64)}},
	}
	for range MaxFrameTimes / share {
		times.Tracks[0].Frames = append(
			times.Tracks[0].Frames,
			[]int64{1 << 31, 16 << 20, 1795188600000000, 0, 1e9, 1e9, 1e9, 1e9, 1e9, 1e9, 1e9, 1e9, 1e9, 1e9},
		)
	}
	for _, m := range []Request{
		join, &Publish{Publication: large(0, volumetric.MaxTiles/share)}, choices, known, pose, arrange, uplink, times,
		&Answer{Offer: 1, SDP: name(MaxMessageBytes/share - 100)},
		&Candidate{Candidate: name(MaxCandidateLength), MID: name(MaxMIDLength)},
	} {
		data, err := Encode(m)
		if err != nil {
			t.Fatal(err)
		}
		if whole, most := share*len(data), MaxBytes(m.Head().Type); whole > most {
			t.Errorf("%q would have %d bytes, and may have %d", m.Head().Type, whole, most)
		}
		again, err := DecodeFromClient(data)
		if err != nil {
			t.Errorf("%d bytes: %v", len(data), err)
			continue
		}
		if err := again.(Request).Validate(); err != nil {
			t.Errorf("%q of %d bytes: %v", again.Head().Type, len(data), err)
		}
	}
}

// TestListsAreAsLongAsTheyMayBe fills the lists of every type with lists, and then adds one entry.
func TestListsAreAsLongAsTheyMayBe(t *testing.T) {
	for messageType, b := range bounds {
		if b.entries == 0 {
			continue
		}
		list := "[0" + strings.Repeat(",0", b.entries-1)
		if err := withinBounds(messageType, []byte(list+"]")); err != nil {
			t.Error(err)
		}
		if err := withinBounds(messageType, []byte(list+",0]")); !errors.Is(err, ErrInvalid) {
			t.Errorf("%d entries in %q: got %v, expected %q", b.entries+1, messageType, err, ErrInvalid)
		}
	}
}

// FuzzLongestList compares the count with a count of the tokens of encoding/json.
func FuzzLongestList(f *testing.F) {
	seed(f)
	f.Add([]byte(`{"a":[1,[2,3,"],[\\\""],{"b":[]}],"c":{"d":[0,0,0,0,0]}}`))
	f.Add([]byte(`"a[,,,"`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if !json.Valid(data) {
			return
		}
		if got, want := longestList(data), countEntries(t, json.NewDecoder(bytes.NewReader(data))); got != want {
			t.Errorf("%s: %d entries, expected %d", data, got, want)
		}
	})
}

// countEntries returns the number of entries of the longest list in the next value. An empty list
// counts as one entry.
func countEntries(t *testing.T, d *json.Decoder) int {
	token, err := d.Token()
	if err != nil {
		t.Skip("encoding/json has limits of its own: ", err)
	}
	delimiter, ok := token.(json.Delim)
	if !ok {
		return 0
	}
	longest, entries := 0, 0
	for ; d.More(); entries++ {
		longest = max(longest, countEntries(t, d))
	}
	if _, err := d.Token(); err != nil {
		t.Fatal(err)
	}
	if delimiter == '{' {
		return longest
	}
	return max(longest, entries, 1)
}
