package publish

import (
	"fmt"
	"math"
	"time"

	"github.com/volsfu/volsfu/cmd/volpeer/internal/produce"
	"github.com/volsfu/volsfu/cmd/volpeer/internal/summary"
	"github.com/volsfu/volsfu/internal/peer"
	"github.com/volsfu/volsfu/internal/peer/distribution"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// report is the JSON object that volpeer publish --json prints.
type report struct {
	Publication string  `json:"publication"`
	Seconds     float64 `json:"seconds"`
	// Frames are captures: captures that fell due, were encoded, were wanted but not encoded (in total and by reason),
	// or of which no receiver wanted any tile.
	FramesCaptured  int64 `json:"frames_captured"`
	FramesPublished int64 `json:"frames_published"`
	FramesDropped   int64 `json:"frames_dropped"`
	// DroppedFor has the reasons: reading from the source failed; the source was behind; a newer frame was captured
	// before the encoder was free; encoding would have missed the time limit.
	DroppedFor dropReport `json:"frames_dropped_for"`
	FramesIdle int64      `json:"frames_idle"`
	FPS        float64    `json:"fps"`
	// Tile frames are tiles at one quality. Sent tile frames were encoded and handed over. Unsent tiles were ready
	// while there was no connection. Paused tiles were not encoded because no receiver takes the tile, given up tiles
	// because the uplink cannot carry the tile; BitsSaved is the size of both. Late tiles were not encoded because the
	// encoder would have missed the time limit. Dropped tiles were handed over and discarded after waiting too long for
	// the uplink.
	TileFramesSent    int64                    `json:"tile_frames_sent"`
	TileFramesUnsent  int64                    `json:"tile_frames_unsent"`
	TileFramesPaused  int64                    `json:"tile_frames_paused"`
	TileFramesGivenUp int64                    `json:"tile_frames_given_up"`
	TileFramesLate    int64                    `json:"tile_frames_late"`
	TileFramesDropped int64                    `json:"tile_frames_dropped"`
	BitsSaved         int64                    `json:"bits_saved"`
	Uplink            uplinkReport             `json:"uplink"`
	Encode            distribution.Percentiles `json:"encode_ms"`
	Bitrate           int64                    `json:"bitrate_bps"`
	Points            float64                  `json:"points_per_frame"`
	Audio             soundReport              `json:"audio"`
	Pictures          []pictureReport          `json:"pictures"`
	// Tiles and Qualities belong to the announced publication.
	Tiles     int                       `json:"tiles"`
	Qualities []volumetric.QualityLevel `json:"qualities"`
	// Layers has the latency of frames by layer until the frames are sent; nil if latency was not measured.
	Layers *summary.Layers `json:"layers"`
}

// uplinkReport describes the uplink at the end: the estimated capacity (0 if unknown), the tracks that exceed the
// capacity, and the bytes sent as probes.
type uplinkReport struct {
	Estimate   volumetric.Bitrate `json:"estimate_bps"`
	GaveUp     []signal.OwnTrack  `json:"gave_up"`
	ProbeBytes int64              `json:"probe_bytes"`
}

type dropReport struct {
	CaptureFailed int64 `json:"capture_failed"`
	SourceBehind  int64 `json:"source_behind"`
	Superseded    int64 `json:"superseded"`
	TooLate       int64 `json:"too_late"`
}

type soundReport struct {
	PacketsSent   int64 `json:"packets_sent"`
	PacketsUnsent int64 `json:"packets_unsent"`
}

func (b *broadcast) summary() report {
	seconds := b.ended.Sub(b.began).Seconds()
	s := report{
		Publication:     b.description.Name,
		Seconds:         thousandths(seconds),
		FramesCaptured:  b.total.Captured,
		FramesPublished: b.total.Published,
		FramesDropped:   b.total.Dropped.All(),
		DroppedFor: dropReport{b.total.Dropped.Failed, b.total.Dropped.Missed, b.total.Dropped.Replaced,
			b.total.Dropped.Late},
		FramesIdle:        b.total.Idle,
		TileFramesSent:    b.total.Sent,
		TileFramesUnsent:  b.total.Unsent,
		TileFramesPaused:  b.total.Paused,
		TileFramesGivenUp: b.total.GivenUp,
		TileFramesLate:    b.total.Late,
		TileFramesDropped: b.uplink.Dropped,
		BitsSaved:         8 * b.total.Saved,
		Uplink: uplinkReport{Estimate: b.uplink.Estimate,
			GaveUp: append([]signal.OwnTrack{}, b.uplink.GaveUp...), ProbeBytes: b.uplink.ProbeBytes},
		Encode:    b.total.Encode.Percentiles(),
		Pictures:  b.pictureReports(),
		Audio:     soundReport{b.spoken.sent.Load(), b.spoken.unsent.Load()},
		Tiles:     len(b.description.Tiles),
		Qualities: b.description.Qualities,
	}
	if seconds > 0 {
		s.FPS = thousandths(float64(b.total.Published) / seconds)
		s.Bitrate = int64(8 * float64(b.total.Bytes) / seconds)
	}
	if b.total.Published > 0 {
		s.Points = thousandths(float64(b.total.Points) / float64(b.total.Published))
	}
	return s
}

func thousandths(v float64) float64 { return math.Round(v*1000) / 1000 }

// producedLine formats the counters of an interval and the uplink estimate.
func producedLine(name string, c *produce.Counts, uplink volumetric.Bitrate, took time.Duration) string {
	seconds := took.Seconds()
	line := fmt.Sprintf("%s  captured %.1f fps  published %.1f fps  dropped %d  encoding %s ms  %s",
		name, float64(c.Captured)/seconds, float64(c.Published)/seconds, c.Dropped.All(), c.Encode.Text(),
		peer.RateText(c.Bytes, took))
	if c.Unsent > 0 {
		line += fmt.Sprintf("  unsent %d", c.Unsent)
	}
	if c.Dropped.Late+c.Late > 0 {
		line += fmt.Sprintf("  too late %d frames and %d tiles", c.Dropped.Late, c.Late)
	}
	if c.Paused+c.GivenUp > 0 {
		line += fmt.Sprintf("  paused %d  given up %d  saved %s", c.Paused, c.GivenUp, peer.RateText(c.Saved, took))
	}
	if uplink > 0 {
		line += fmt.Sprintf("  uplink %v", uplink)
	}
	return line
}
