package main_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/test/long"
	"github.com/volsfu/volsfu/test/testbed"
)

// TestConference connects a program in C and one in Go: frames of each reach the other unchanged,
// at the chosen qualities.
func TestConference(t *testing.T) {
	long.Test(t)
	library(t)
	for _, test := range []struct {
		name  string
		flags func(*testing.T) []string
	}{
		{"as it is", func(*testing.T) []string { return nil }},
		{"with AddressSanitizer", func(t *testing.T) []string { return []string{sanitizer(t)} }},
	} {
		t.Run(test.name, func(t *testing.T) {
			program := compile(t, filepath.Join("testdata", "peer.c"), test.flags(t)...)
			conference := open(t)
			gopher := publish(t, conference, "room", "")
			carol := start(t, program, conference.Server.URL(), "room", "carol")
			carol.await("the peer's media flows", func() bool { return carol.said(0, "event 1 ") == 1 })
			carol.ask(fmt.Sprintf("limits 0 %d", testbed.Everything), "status 0")
			switchBothWays(t, gopher, carol)
			tellTheRest(gopher, carol)
			// The test waited for this number of frames of two tiles at two qualities.
			if frames := carol.finish(); frames < 4*enough {
				t.Errorf("the peer received %d frames, expected at least %d", frames, 4*enough)
			}
		})
	}
}

// enough frames of a tile at a quality show that it is being sent.
const enough = 10

// switchBothWays changes the qualities of each publication by its receiver, one after the other.
func switchBothWays(t *testing.T, gopher *gopher, carol *peer) {
	t.Helper()
	for _, quality := range []volumetric.Quality{2, 0, 1} {
		body := volumetric.PublicationRef{Participant: "carol", Publication: "body"}
		if err := gopher.session.SetQuality(
			t.Context(),
			signal.Choice{PublicationRef: body, Quality: signal.Only(quality)},
		); err != nil {
			t.Fatal(err)
		}
		from := gopher.frameCount()
		carol.await(fmt.Sprintf("both tiles come at quality %d", quality), func() bool {
			return gopher.received(from, 0, quality) >= enough && gopher.received(from, 1, quality) >= enough
		})
	}
	for _, quality := range []int{1, 0} {
		from := carol.lineCount()
		carol.ask(fmt.Sprintf("quality gopher desk -1 %d", quality), "status 0")
		carol.await(fmt.Sprintf("the peer receives both tiles at quality %d", quality), func() bool {
			return carol.said(from, fmt.Sprintf("frame gopher desk 0 %d ", quality)) >= enough &&
				carol.said(from, fmt.Sprintf("frame gopher desk 1 %d ", quality)) >= enough
		})
		carol.await("the peer is told", func() bool {
			return carol.said(from, fmt.Sprintf("event 9 [gopher] [desk] 1 %d [choice]", quality)) > 0 || quality == 1
		})
	}
	carol.ask("quality gopher desk 1 -1", "event 9 [gopher] [desk] 1 -1 ")
}

// tellTheRest tests the other data besides frames.
func tellTheRest(gopher *gopher, carol *peer) {
	carol.ask("look 1.5", "status 0")
	carol.ask("stand 2.25", "status 0")
	carol.await("the gopher hears where the object stands", func() bool { return gopher.posed(2.25) })
	carol.ask("limits -5 0", "status -4")
	carol.ask("statistics", `statistics {"totals":{"frames_complete":`)
	carol.ask(
		"room",
		`room {"room":"room","identity":"carol","participants":[{"identity":"gopher","publications":[{"name":"desk"`,
	)
}
