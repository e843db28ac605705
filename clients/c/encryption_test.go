package main_test

import (
	"path/filepath"
	"testing"

	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/test/long"
)

// passphrase is shared by the participants of an encrypted room.
const passphrase = "correct horse battery staple"

// TestEncryptedConference connects a program in C and one in Go that encrypt from end to end. They rotate the secret,
// and a program without the new secret reads nothing.
func TestEncryptedConference(t *testing.T) {
	long.Test(t)
	library(t)
	program := compile(t, filepath.Join("testdata", "peer.c"))
	conference := open(t)
	gopher := publish(t, conference, "room", passphrase)
	t.Setenv("PEER_PASSPHRASE", passphrase)
	carol := start(t, program, conference.Server.URL(), "room", "carol")
	leaver := start(t, program, conference.Server.URL(), "room", "leaver")
	body := volumetric.PublicationRef{Participant: "carol", Publication: "body"}
	if err := gopher.session.SetQuality(t.Context(),
		signal.Choice{PublicationRef: body, Quality: signal.Only(1)}); err != nil {
		t.Fatal(err)
	}
	carol.ask("quality gopher desk -1 1", "status 0")
	leaver.ask("quality gopher desk -1 1", "status 0")
	both := func(when string) {
		t.Helper()
		mine, others := gopher.frameCount(), carol.lineCount()
		carol.await(when+" frames arrive in both directions", func() bool {
			return gopher.received(mine, 0, 1) >= enough &&
				carol.said(others, "frame gopher desk 0 1 ") >= enough
		})
	}
	both("with a passphrase")
	leaver.await("the leaver reads them, too", func() bool { return leaver.said(0, "frame gopher desk 0 1 ") >= enough })

	const secret = "thirty-two_bytes_that_no_one_has"
	if err := gopher.session.Keys().SetSecret(1, []byte(secret)); err != nil {
		t.Fatal(err)
	}
	carol.ask("key 1 "+secret, "status 0")
	carol.ask("use 1", "status 0")
	if err := gopher.session.Keys().Use(1); err != nil {
		t.Fatal(err)
	}
	leaver.await("the leaver is told", func() bool { return leaver.said(0, "event 14 [gopher] [desk]") > 0 })
	from := leaver.lineCount()
	carol.ask("forget 0", "status 0")
	gopher.session.Keys().Forget(0)
	both("with the new secret")
	if n := leaver.said(from, "frame gopher "); n > 0 {
		t.Errorf("the leaver reads %d frames after the rotation", n)
	}
	carol.await("the leaver's own frames are refused", func() bool {
		return carol.said(0, "event 14 [leaver] [body]") > 0
	})
	leaver.ask("statistics", `statistics {"totals":{"frames_complete":`)
	carol.finish()
	leaver.finish()
	for _, tile := range gopher.session.Stats() {
		if tile.Track.Participant == "carol" && tile.Refused > 0 {
			t.Errorf("%d frames of %v were refused although the rotation was in order", tile.Refused, tile.Track.TileRef)
		}
	}
}
