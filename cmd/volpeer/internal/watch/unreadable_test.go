package watch

import (
	"strings"
	"testing"
	"time"

	"github.com/volsfu/volsfu/cmd/volpeer/internal/choice"
	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/pkg/vr2gather"
	"github.com/volsfu/volsfu/test/wait"
)

// TestUnsupportedCodecsAreLogged publishes frames and audio of VR2Gather's clients for which there is no codec.
func TestUnsupportedCodecsAreLogged(t *testing.T) {
	voice := volumetric.Publication{
		Name: "voice", Kind: volumetric.KindAudio, Mode: volumetric.ModeAlternatives,
		Codec: volumetric.Codec{MIMEType: "audio/VR2A", ClockRate: 90000},
		Tiles: make([]volumetric.Tile, 1), Qualities: make([]volumetric.QualityLevel, 1), VR2Gather: true,
	}
	participant := alice(volumetric.ModeAlternatives)
	participant.Publications = append(participant.Publications, voice)
	session := newFakeSession(participant)
	th := open(t, viewerConfig{wish: choice.Auto}, session, nil)
	unknown := volumetric.FourCC{'o', 't', 'h', 'r'}
	whole := append(vr2gather.NewFrameHeader(unknown, 1, time.Now()).Append(nil), 1)
	for number := range int64(3) {
		session.frames <- client.Frame{
			Track: volumetric.TrackRef{TileRef: bodyTile(0)}, Number: number, Codec: unknown,
			Data: whole[vr2gather.FrameHeaderSize:], Whole: whole,
		}
		session.packets <- client.Packet{
			Track: volumetric.TrackRef{TileRef: volumetric.TileRef{
				PublicationRef: volumetric.PublicationRef{Participant: "alice", Publication: "voice"},
			}}, Codec: voice.Codec,
		}
	}
	wait.Until(t, "both warnings", func() bool {
		said := th.console.String()
		return strings.Contains(said, "codec not available: FourCC") &&
			strings.Contains(said, "codec not available: audio/VR2A")
	})
	wait.Until(t, "everything to be taken", func() bool { return len(session.frames)+len(session.packets) == 0 })
	if err := th.close(); err != nil {
		t.Fatal(err)
	}
	if said := th.console.String(); strings.Count(said, "codec not available") != 2 {
		t.Errorf("expected each warning once, got\n%s", said)
	}
}
