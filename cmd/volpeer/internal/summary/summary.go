// Package summary keeps the books of a watching client and sums them up, as the object that watching ends with. It is
// stepped with the time of what it is told; a Book belongs to one goroutine.
package summary

import (
	"math"

	"github.com/volsfu/volsfu/internal/peer/distribution"
)

// Summary is what a watching client prints at its end. Counts are of tile frames.
type Summary struct {
	Figures
	Audio Audio `json:"audio"`
	// Estimate is what the server last said that the link carries, Allocated the rate of what it had decided to send
	// then; 0 if it said nothing.
	Estimate  int64 `json:"estimate_bps"`
	Allocated int64 `json:"allocated_bps"`
	// Render is what was drawn; nil if nothing was to be.
	Render *Render `json:"render"`
	// Layers are where the time of frames went; nil if that was not measured.
	Layers *Layers `json:"layers"`
	// Publications are the figures of each (participant, publication, tile).
	Publications []Tile `json:"publications"`
}

// Tile is the figures of one tile. Skew is its publication's.
type Tile struct {
	Participant string `json:"participant"`
	Publication string `json:"publication"`
	Tile        int    `json:"tile"`
	Figures
}

// Figures are the figures of a tile, or of all together.
type Figures struct {
	// Expected frames are the sum of the five counts below; frames that were still on their way at the end are not
	// among them.
	Expected        int64 `json:"frames_expected"`
	Decoded         int64 `json:"frames_decoded"`
	Undecodable     int64 `json:"frames_undecodable"`
	Missing         int64 `json:"frames_missing"`
	Skipped         int64 `json:"frames_skipped"`
	DroppedByServer int64 `json:"frames_dropped_by_server"`
	Held            int64 `json:"tiles_held"`
	Switches        int64 `json:"switches"`
	// Latency is from capture to decoded.
	Latency distribution.Percentiles `json:"latency_ms"`
	// FPS is frames decoded per second while the tile was on, the descriptions of one frame number together being one;
	// of all tiles, the mean.
	FPS float64 `json:"fps"`
	// Bitrate is the payload received per second, from the first frame on.
	Bitrate         int64  `json:"bitrate_bps"`
	PacketsReceived uint64 `json:"packets_received"`
	PacketsLost     uint64 `json:"packets_lost"`
	NACKsSent       uint64 `json:"nacks_sent"`
	// PacketsRecovered are those of the lost that came all the same.
	PacketsRecovered uint64 `json:"packets_recovered"`
	// QualityChange is from a request to the first frame of that quality decoded.
	QualityChange distribution.Percentiles `json:"quality_change_latency_ms"`
	// Skew is how far apart sound and volume of the same capture time were heard and seen, whichever came first.
	Skew distribution.Percentiles `json:"av_skew_ms"`
}

// Audio are the figures of received sound.
type Audio struct {
	PacketsReceived int64 `json:"packets_received"`
	PacketsLost     int64 `json:"packets_lost"`
}

// Render are the figures of what was drawn. Frames are those of publications, all tiles together.
type Render struct {
	Drawn int64 `json:"frames_drawn"`
	// Superseded frames were due to be shown, and replaced by the next before they were drawn.
	Superseded int64 `json:"frames_superseded"`
	// Wait is from the last tile decoded to the beginning of drawing, playout included; Draw the drawing; Latency from
	// capture to drawn.
	Wait    distribution.Percentiles `json:"wait_ms"`
	Draw    distribution.Percentiles `json:"draw_ms"`
	Latency distribution.Percentiles `json:"latency_ms"`
	// Pictures were written, PicturesDropped were not, since another was being written.
	Pictures        int64 `json:"pictures_written"`
	PicturesDropped int64 `json:"pictures_dropped"`
}

// round keeps so many digits after the point.
func round(v float64, digits int) float64 {
	scale := math.Pow10(digits)
	return math.Round(v*scale) / scale
}

// Add adds the counts of a tile.
func (f *Figures) Add(t *Figures) {
	f.Expected += t.Expected
	f.Decoded += t.Decoded
	f.Undecodable += t.Undecodable
	f.Missing += t.Missing
	f.Skipped += t.Skipped
	f.DroppedByServer += t.DroppedByServer
	f.Held += t.Held
	f.Switches += t.Switches
	f.Bitrate += t.Bitrate
	f.PacketsReceived += t.PacketsReceived
	f.PacketsLost += t.PacketsLost
	f.NACKsSent += t.NACKsSent
	f.PacketsRecovered += t.PacketsRecovered
}
