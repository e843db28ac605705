package vr2gather

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/volsfu/volsfu/internal/sfu"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/pkg/vr2gather"
)

// bodyOf returns a client's body with the given number of tiles and three qualities.
func bodyOf(client uint32, tiles int) sfu.Choosable {
	return sfu.Choosable{
		PublicationRef: volumetric.PublicationRef{Participant: identityOf(client), Publication: bodyName},
		Number:         client, Tiles: tiles, Highest: 2,
	}
}

// TestMeantPublications checks which publications the choices of a message refer to.
func TestMeantPublications(t *testing.T) {
	publications := []sfu.Choosable{bodyOf(1, 9), bodyOf(3, 4)}
	for text, want := range map[string]string{
		"1,0":                 "1",
		"3,0,1":               "3",
		"0,0,0,0,0,0,0,0,0,0": "1",
		"0,1,1,1,1":           "3",
		"0,1":                 "",
		"77,1":                "",
	} {
		choices, unread := vr2gather.ParseQualityChoices(text)
		if len(choices) != 1 || unread != 0 {
			t.Fatalf("%q is %v", text, choices)
		}
		var names []string
		for i := range publications {
			if means(choices[0], &publications[i]) {
				names = append(names, publications[i].Participant)
			}
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("%q means %q, expected %q", text, got, want)
		}
	}
}

// TestChosenTiles checks that only the named tiles are chosen, and that the last quality of a tile counts.
func TestChosenTiles(t *testing.T) {
	publications := []sfu.Choosable{bodyOf(1, 3), bodyOf(2, 3)}
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
		taken, ignored, _ := resolve(publications, choices)
		var got []string
		for _, c := range taken {
			got = append(got, fmt.Sprintf("%s/%d:%v", c.Participant, *c.Tile, c.Quality.Qualities))
		}
		if line := strings.Join(append(got, fmt.Sprint("ignored ", ignored)), " "); line != want {
			t.Errorf("%q gives %q, expected %q", text, line, want)
		}
	}
}

// TestChoicesWithoutEnd sends a message of the maximum size, which names the same tiles and an unknown client half a
// million times. The number of choices must not exceed the number of tiles.
func TestChoicesWithoutEnd(t *testing.T) {
	publications := []sfu.Choosable{bodyOf(1, 3), bodyOf(2, 3)}
	choices, unread := vr2gather.ParseQualityChoices(strings.Repeat("1,0;0,1,1,1;7,1;", 100_000))
	if len(choices) != 300_000 || unread != 0 {
		t.Fatalf("%d choices, %d unread", len(choices), unread)
	}
	var taken, ignored int
	allocations := testing.AllocsPerRun(1, func() {
		made, n, _ := resolve(publications, choices)
		taken, ignored = len(made), n
	})
	if taken != 6 || ignored != 100_000 || allocations > 50 {
		t.Errorf("%d choices made, %d ignored, %.0f allocations; expected 6, 100000, and 50 at most", taken, ignored,
			allocations)
	}
}

// TestChoicesAreCounted checks that ignored choices are counted and logged with a reason.
func TestChoicesAreCounted(t *testing.T) {
	for _, test := range []struct {
		text     string
		unread   int
		choices  int
		ignored  uint64
		warnings []string
	}{
		{"1,0", 0, 1, 0, nil},
		{"1,0;7,1", 2, 1, 3, []string{
			"part of a quality message cannot be read", "quality message names a client that publishes nothing",
		}},
		{"1,3", 0, 0, 1, []string{"quality message names a tile or a quality that does not exist"}},
	} {
		named, _ := vr2gather.ParseQualityChoices(test.text)
		var ignored atomic.Uint64
		var chooser sfu.Chooser = &chooser{named: named, unread: test.unread, ignored: &ignored}
		choices, warnings := chooser.Choose([]sfu.Choosable{bodyOf(1, 1)})
		if len(choices) != test.choices || ignored.Load() != test.ignored || !slices.Equal(warnings, test.warnings) {
			t.Errorf("%q: %d choices, %d ignored, %q; expected %d, %d, %q", test.text, len(choices), ignored.Load(),
				warnings,
				test.choices, test.ignored, test.warnings)
		}
	}
}

// TestWithheld checks which publications peers can read.
func TestWithheld(t *testing.T) {
	flagged := publicationsOf(vr2gather.Query{Client: 1, Tiles: 1, Qualities: 3})[1]
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
}
