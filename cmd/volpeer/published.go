package main

import (
	"fmt"
	"math"
	"time"

	"github.com/volsfu/volsfu/cmd/volpeer/internal/produce"
	"github.com/volsfu/volsfu/cmd/volpeer/internal/summary"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// published is the object that volpeer publish --json prints.
type published struct {
	Publication string  `json:"publication"`
	Seconds     float64 `json:"seconds"`
	// Frames are captures: those that fell due, those that were encoded, and those that were not since the encoder was behind.
	FramesCaptured  int64   `json:"frames_captured"`
	FramesPublished int64   `json:"frames_published"`
	FramesDropped   int64   `json:"frames_dropped"`
	FPS             float64 `json:"fps"`
	// Tile frames are encoded tiles at one quality; unsent ones came while there was no connection.
	TileFramesSent   int64               `json:"tile_frames_sent"`
	TileFramesUnsent int64               `json:"tile_frames_unsent"`
	Encode           summary.Percentiles `json:"encode_ms"`
	Bitrate          int64               `json:"bitrate_bps"`
	Points           float64             `json:"points_per_frame"`
	Audio            publishedSound      `json:"audio"`
	// Tiles and Qualities are as they were announced.
	Tiles     int                       `json:"tiles"`
	Qualities []volumetric.QualityLevel `json:"qualities"`
}

type publishedSound struct {
	PacketsSent   int64 `json:"packets_sent"`
	PacketsUnsent int64 `json:"packets_unsent"`
}

func (b *broadcast) summary() published {
	seconds := b.ended.Sub(b.began).Seconds()
	s := published{
		Publication:      b.description.Name,
		Seconds:          thousandths(seconds),
		FramesCaptured:   b.total.Captured,
		FramesPublished:  b.total.Published,
		FramesDropped:    b.total.Dropped,
		TileFramesSent:   b.total.Sent,
		TileFramesUnsent: b.total.Unsent,
		Encode:           summary.PercentilesOf(&b.total.Encode),
		Audio:            publishedSound{b.heard.sent.Load(), b.heard.unsent.Load()},
		Tiles:            len(b.description.Tiles),
		Qualities:        b.description.Qualities,
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

// producedLine says what was produced in a stretch of time.
func producedLine(name string, c *produce.Counts, took time.Duration) string {
	seconds := took.Seconds()
	line := fmt.Sprintf("%s  captured %.1f fps  published %.1f fps  dropped %d  encoding %s ms  %s",
		name, float64(c.Captured)/seconds, float64(c.Published)/seconds, c.Dropped, halfAndMost(&c.Encode), rate(c.Bytes, took))
	if c.Unsent > 0 {
		line += fmt.Sprintf("  unsent %d", c.Unsent)
	}
	return line
}
