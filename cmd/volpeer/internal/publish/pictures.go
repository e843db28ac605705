package publish

import (
	"context"
	"errors"
	"fmt"

	"github.com/volsfu/volsfu/cmd/volpeer/internal/produce"
	"github.com/volsfu/volsfu/internal/peer/picture"
	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// The names of the publications of pictures.
const (
	cameraName = "webcam"
	screenName = "screen"
)

// sourceNone is the source of a broadcast without an object.
const sourceNone = "none"

// errNothing is returned if a broadcast has neither an object nor a picture.
var errNothing = errors.New("--source none needs --camera or --screen")

const fileGrammar = "one IVF file with VP8, or H.264 with start codes, for each quality in ascending order, as in " +
	"FILE[@WIDTHxHEIGHT[@FPS]],…; they are repeated"

// openPictures opens the recordings of a camera and of a screen. Empty lists have none.
func openPictures(camera, screen string) (players []*picture.Player, err error) {
	for _, p := range []struct {
		flag, files, name string
		source            volumetric.PictureSource
	}{
		{"--camera", camera, cameraName, volumetric.SourceCamera},
		{"--screen", screen, screenName, volumetric.SourceScreen},
	} {
		if p.files == "" {
			continue
		}
		recordings, err := picture.ParseFiles(p.files)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.flag, err)
		}
		players = append(players, picture.NewRecordingPlayer(p.name, p.source, recordings))
	}
	return players, nil
}

// wantKeyFrame passes a request of the server to the player of the publication.
func (b *broadcast) wantKeyFrame(e client.KeyFrameWanted) {
	for _, p := range b.pictures {
		if p.Publication().Name == e.Publication {
			p.WantKeyFrame(e.Quality)
		}
	}
}

// nothing is the feed of a broadcast without an object.
type nothing struct{}

// Run implements feed.
func (nothing) Run(ctx context.Context, _ produce.Sink) error {
	<-ctx.Done()
	return nil
}

// Counts implements feed.
func (nothing) Counts() produce.Counts { return produce.Counts{} }

// Close implements feed.
func (nothing) Close() {}

// pictureReport has the frames of one picture in the report, all qualities together.
type pictureReport struct {
	Publication    string `json:"publication"`
	FramesSent     int64  `json:"frames_sent"`
	KeyFramesSent  int64  `json:"key_frames_sent"`
	FramesUnwanted int64  `json:"frames_unwanted"`
	FramesUnsent   int64  `json:"frames_unsent"`
}

// pictureReports returns the report of every picture.
func (b *broadcast) pictureReports() []pictureReport {
	reports := make([]pictureReport, 0, len(b.pictures))
	for _, p := range b.pictures {
		c := p.Counts()
		reports = append(reports, pictureReport{p.Publication().Name, c.Sent, c.KeyFrames, c.Unwanted, c.Unsent})
	}
	return reports
}
