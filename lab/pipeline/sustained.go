package pipeline

import (
	"context"
	"fmt"
	"math"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/test/claim"
)

// notMeasured is the figure of a missing measurement.
var notMeasured = math.NaN()

const (
	rate = 30
	// sustainedShare of the frames must be encoded: 594 of 600. A joining watcher may cost a few.
	sustainedShare = 0.99
	// decodedShare of the frames must be decoded: 27 of 30.
	decodedShare = 0.9
)

// sustained measures one publisher that encodes all qualities at their rate, with volpeer's own figures.
type sustained struct {
	progress lab.Progress
	scene    scene
}

func newSustained(progress lab.Progress) *sustained {
	return &sustained{progress, scene{
		publish: []string{"--source", "synthetic", "--fps", fmt.Sprint(rate), "--points", "60000", "--tiles", "4",
			"--codec", "draco",
			"--qualities", "low=15000:9,mid=30000:10,high=60000:11"},
		seconds: sceneSeconds, server: warm,
	}}
}

func (s *sustained) run(ctx context.Context) ([]claim.Line, error) {
	const name = "one publisher"
	p, err := findPrograms()
	if err != nil {
		return nil, err
	}
	if why, err := p.lacksDraco(ctx); err != nil || why != "" {
		return skipped(name, why), err
	}
	s.progress.Say("  one publisher for %d s", s.scene.seconds)
	outcome, err := s.scene.play(ctx, p)
	if err != nil {
		return nil, err
	}
	return append(outcome.published.lines(name+": "), outcome.watched.lines("watcher: ")...), nil
}

// skipped returns a line with the reason, or no line for an empty reason.
func skipped(name, why string) []claim.Line {
	if why == "" {
		return nil
	}
	return []claim.Line{claim.Skip(name, why)}
}

// share returns the achieved share of the wanted frames.
func share(came, lost int64) float64 {
	if came+lost == 0 {
		return 0
	}
	return float64(came) / float64(came+lost)
}

func (p *published) lines(prefix string) []claim.Line {
	lines := []claim.Line{
		claim.AtLeast(prefix+"frames encoded, of 30 requested per second",
			rate*share(p.FramesPublished, p.FramesDropped), "fps", sustainedShare*rate),
		claim.Information(prefix+"frames encoded", float64(p.FramesPublished), ""),
		claim.Information(prefix+"frames dropped", float64(p.FramesDropped), ""),
		claim.Information(prefix+"frames dropped because a newer frame was ready",
			float64(p.DroppedFor.Superseded), ""),
		claim.Information(prefix+"frames dropped because they would have been late", float64(p.DroppedFor.TooLate), ""),
		claim.Information(prefix+"frames dropped because the source was behind or failed",
			float64(p.DroppedFor.SourceBehind+p.DroppedFor.CaptureFailed), ""),
		claim.Information(prefix+"tiles at one quality not encoded because they would have been late",
			float64(p.TileFramesLate), ""),
		claim.Information(prefix+"tiles at one quality not sent because the uplink was busy",
			float64(p.TileFramesDropped), ""),
		claim.Information(prefix+"points encoded per frame, of all qualities", p.Points, ""),
	}
	return append(lines, p.Encode.lines(prefix+"cutting, sampling and encoding a frame")...)
}

func (w *watched) lines(prefix string) []claim.Line {
	lines := []claim.Line{
		claim.AtLeast(prefix+"frames decoded per second and tile", w.FPS, "fps", decodedShare*rate),
		claim.Exactly(prefix+"frames undecodable", w.Undecodable, "", 0),
		claim.Information(prefix+"frames missing", float64(w.Missing), ""),
		claim.Information(prefix+"frames skipped, superseded before they were decoded", float64(w.Skipped), ""),
		claim.Information(prefix+"bit rate received", w.BitrateBPS/1e6, "Mbit/s"),
	}
	return append(lines, w.Latency.lines(prefix+"latency from capture to decoded")...)
}
