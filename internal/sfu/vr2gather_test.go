package sfu

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.uber.org/zap"

	"github.com/volsfu/volsfu/internal/sfu/subscriber"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/pkg/vr2gather"
)

// clientPublication is a publication of so many tiles at three qualities, for VR2Gather peers.
func clientPublication(client uint32, name string, tiles int) *publication {
	p := &publication{Publication: subscriber.NewPublication(VR2GatherIdentity(client), volumetric.Publication{
		Name: name, Kind: volumetric.KindVideo, Mode: volumetric.ModeAlternatives, VR2Gather: true,
		Codec: volumetric.Codec{MIMEType: volumetric.MIMEVolumetric, ClockRate: 90000},
		Tiles: make([]volumetric.Tile, tiles), Qualities: make([]volumetric.QualityLevel, 3),
	})}
	p.Number = client
	return p
}

// roomOf is a room with participants under these identities, each with a publication of so many tiles.
func roomOf(tiles map[string]int) *Room {
	r := &Room{participants: make(members)}
	for identity, n := range tiles {
		p := &participant{room: r, identity: identity, profile: &signallingProfile, log: zap.NewNop()}
		r.participants[identity] = p
		r.participants.giveNumber(p)
		p.publications = []*publication{clientPublication(p.number, "body", n)}
		p.publications[0].Ref.Participant = identity
	}
	return r
}

// TestMeantPublications finds whom quality messages mean.
func TestMeantPublications(t *testing.T) {
	r := roomOf(map[string]int{"1": 9, "2": 9, "user 3": 4, "4": 9})
	r.participants["4"].publications[0].silent = true
	self := r.participants["2"]
	for text, want := range map[string]string{
		"1,0":                 "1",
		"3,0,1":               "user 3",
		"0,0,0,0,0,0,0,0,0,0": "1",
		"0,1,1,1,1":           "user 3",
		"0,1":                 "",
		"2,1":                 "",
		"4,1":                 "",
		"77,1":                "",
	} {
		choices, unread := vr2gather.ParseQualityChoices(text)
		if len(choices) != 1 || unread != 0 {
			t.Fatalf("%q is %v", text, choices)
		}
		var names []string
		for _, p := range r.choosable(self) {
			if means(choices[0], p) {
				names = append(names, p.Ref.Participant)
			}
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("%q means %q, expected %q", text, got, want)
		}
	}
}

// listener is a VR2Gather peer that makes choices.
func listener() *participant {
	return &participant{log: zap.NewNop(), profile: &vr2GatherProfile, vr2gather: &vr2GatherPeer{told: make(map[string]bool)}}
}

// TestChosenTiles makes choices of what a message names, and of nothing else. What is named twice is chosen as it is named last.
func TestChosenTiles(t *testing.T) {
	publications := []*publication{clientPublication(1, "body", 3), clientPublication(2, "body", 3)}
	for text, want := range map[string]string{
		"1,2,0,1":               "1/0:[2] 1/1:[0] 1/2:[1] ignored 0",
		"1,-1,,1":               "1/0:[] 1/2:[1] ignored 0",
		"1,1":                   "1/0:[1] ignored 0",
		"1,3,1,1,2,2":           "1/1:[1] 1/2:[1] ignored 3",
		"2,1;1,0;2,0,2":         "1/0:[0] 2/0:[0] 2/1:[2] ignored 0",
		"1,2,2,2;0,0,0,0;1,,,1": "1/0:[0] 1/1:[0] 1/2:[1] 2/0:[0] 2/1:[0] 2/2:[0] ignored 0",
		"77,1;0,1":              "ignored 2",
	} {
		choices, _ := vr2gather.ParseQualityChoices(text)
		taken, ignored := listener().resolve(publications, choices)
		var got []string
		for _, c := range taken {
			got = append(got, fmt.Sprintf("%s/%d:%v", c.Participant, *c.Tile, c.Quality.Qualities))
		}
		if line := strings.Join(append(got, fmt.Sprint("ignored ", ignored)), " "); line != want {
			t.Errorf("%q gives %q, expected %q", text, line, want)
		}
	}
}

// TestChoicesWithoutEnd has a message name the same tiles and nobody's half a million times, as many as fit in one: no more is made of it than there are tiles.
func TestChoicesWithoutEnd(t *testing.T) {
	publications := []*publication{clientPublication(1, "body", 3), clientPublication(2, "body", 3)}
	choices, unread := vr2gather.ParseQualityChoices(strings.Repeat("1,0;0,1,1,1;7,1;", 100_000))
	if len(choices) != 300_000 || unread != 0 {
		t.Fatalf("%d choices, %d unread", len(choices), unread)
	}
	p := listener()
	var taken, ignored int
	allocations := testing.AllocsPerRun(1, func() {
		made, n := p.resolve(publications, choices)
		taken, ignored = len(made), n
	})
	if taken != 6 || ignored != 100_000 || allocations > 50 {
		t.Errorf("%d choices made, %d ignored, %.0f allocations; expected 6, 100000, and 50 at most", taken, ignored, allocations)
	}
}

// TestClientNumbers gives participants the numbers that VR2Gather peers know them by.
func TestClientNumbers(t *testing.T) {
	r := &Room{participants: make(members)}
	for _, step := range []struct {
		identity string
		want     uint32
	}{{"7", 7}, {"user 3", 3}, {"guest 7", 1000}, {"ada", 1001}, {"0", 1002}, {"99999999999999999999", 1003}, {"room-1000", 1004}} {
		p := &participant{room: r, identity: step.identity, profile: &signallingProfile}
		r.participants[step.identity] = p
		r.participants.giveNumber(p)
		if p.number != step.want || r.participants.byNumber(p.number) != p {
			t.Errorf("%q is %d, expected %d", step.identity, p.number, step.want)
		}
	}
}

// TestWithheld tells what VR2Gather peers can read.
func TestWithheld(t *testing.T) {
	flagged := clientPublication(1, "body", 1).Description
	plain, sound, opus := flagged, flagged, flagged
	plain.VR2Gather = false
	sound.Kind, sound.Codec.MIMEType = volumetric.KindAudio, "audio/pcm"
	opus.Kind, opus.Codec.MIMEType = volumetric.KindAudio, volumetric.MIMEOpus
	var got []bool
	for _, d := range []volumetric.Publication{flagged, plain, sound, opus} {
		got = append(got, withheld(&d) != "")
	}
	if !slices.Equal(got, []bool{false, true, false, true}) {
		t.Errorf("withheld: %v", got)
	}
	r := roomOf(map[string]int{"1": 1})
	owner := r.participants["1"]
	owner.publications = append(owner.publications, clientPublication(1, "desk", 1))
	if r.participants.second(owner.publications[0]) || !r.participants.second(owner.publications[1]) {
		t.Error("VR2Gather knows one object of each client: the first")
	}
}

// FuzzPrintable checks that codecs' names from the network do no harm in messages.
func FuzzPrintable(f *testing.F) {
	f.Add([]byte("cwi1"))
	f.Add([]byte{0, '"', '\n', 0xff})
	f.Fuzz(func(t *testing.T, text []byte) {
		var codec volumetric.FourCC
		copy(codec[:], text)
		for _, c := range printable(codec) {
			if c != '.' && !(c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z') {
				t.Fatalf("%q of %q", printable(codec), text)
			}
		}
	})
}
