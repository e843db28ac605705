// Package summary collects the counters of a watching client and computes the summary that volpeer watch prints at the
// end. All methods take explicit times. A Book is owned by one goroutine.
package summary

import (
	"math"

	"github.com/volsfu/volsfu/internal/peer/distribution"
	"github.com/volsfu/volsfu/pkg/client"
)

// Summary is the JSON object that volpeer watch --json prints. Counts are of tile frames.
type Summary struct {
	Figures
	Audio Audio `json:"audio"`
	// Estimate is the server's last estimate of the link, Allocated the rate that the server allocated at that time.
	// Both are 0 if the server reported nothing.
	Estimate  int64 `json:"estimate_bps"`
	Allocated int64 `json:"allocated_bps"`
	ECN       ECN   `json:"ecn"`
	// Redundancy has the packets of each path; nil if no packet has arrived on a second path.
	Redundancy *Redundancy `json:"redundancy"`
	// Render has the counters of rendering; nil if nothing was rendered.
	Render *Render `json:"render"`
	// Layers has the latency of frames by layer; nil if latency was not measured.
	Layers *Layers `json:"layers"`
	// Encryption has the counts of encrypted frames and packets.
	Encryption client.EncryptionStats `json:"encryption"`
	// Publications has the figures of each (participant, publication, tile).
	Publications []Tile `json:"publications"`
	// Pictures has the figures of each picture in H264 or VP8. Their frames are received and not decoded.
	Pictures []Picture `json:"pictures"`
}

// Picture has the figures of one picture.
type Picture struct {
	Participant string `json:"participant"`
	Publication string `json:"publication"`
	// Quality is the last quality, -1 for off. Switches counts the changes between two qualities.
	Quality  int   `json:"quality"`
	Switches int64 `json:"switches"`
	// Frames are the complete frames. KeyFrames of them depend on no other frame, and Undecodable of them lack a frame
	// on which they depend.
	Frames      int64 `json:"frames_received"`
	KeyFrames   int64 `json:"key_frames_received"`
	Undecodable int64 `json:"frames_undecodable"`
	// LongestGap is the longest time between two decodable frames while the picture was on, in ms.
	LongestGap float64 `json:"longest_gap_ms"`
	FPS        float64 `json:"fps"`
	// Bitrate is the received payload in bit/s.
	Bitrate int64 `json:"bitrate_bps"`
}

// PictureFrames returns the number of decodable frames of all pictures.
func (s *Summary) PictureFrames() (frames int64) {
	for i := range s.Pictures {
		frames += s.Pictures[i].Frames - s.Pictures[i].Undecodable
	}
	return frames
}

// Tile has the figures of one tile. Skew is that of the publication.
type Tile struct {
	Participant string `json:"participant"`
	Publication string `json:"publication"`
	Tile        int    `json:"tile"`
	Figures
}

// Figures are the counters of one tile or of all tiles.
type Figures struct {
	// Expected is the sum of the six counters below. Frames that were in flight at the end are not included.
	Expected        int64 `json:"frames_expected"`
	Decoded         int64 `json:"frames_decoded"`
	Undecodable     int64 `json:"frames_undecodable"`
	Missing         int64 `json:"frames_missing"`
	Skipped         int64 `json:"frames_skipped"`
	DroppedByServer int64 `json:"frames_dropped_by_server"`
	Refused         int64 `json:"frames_refused"`
	Held            int64 `json:"tiles_held"`
	Switches        int64 `json:"switches"`
	// Latency is the time from capture to the end of decoding.
	Latency distribution.Percentiles `json:"latency_ms"`
	// FPS is the number of decoded frames per second while the tile was on. All descriptions of one frame number count
	// once. For all tiles together, FPS is the mean over the tiles.
	FPS float64 `json:"fps"`
	// Bitrate is the received payload in bit/s, from the first frame on.
	Bitrate         int64  `json:"bitrate_bps"`
	PacketsReceived uint64 `json:"packets_received"`
	PacketsLost     uint64 `json:"packets_lost"`
	NACKsSent       uint64 `json:"nacks_sent"`
	// PacketsRecovered is the number of lost packets that arrived by retransmission or parity.
	PacketsRecovered uint64 `json:"packets_recovered"`
	// QualityChange is the time from a request to the first decoded frame of the requested quality.
	QualityChange distribution.Percentiles `json:"quality_change_latency_ms"`
	// Skew is the absolute time difference between sound and video of the same capture time.
	Skew distribution.Percentiles `json:"av_skew_ms"`
}

// Audio has the counters of received audio.
type Audio struct {
	PacketsReceived int64 `json:"packets_received"`
	PacketsLost     int64 `json:"packets_lost"`
	// LongestGap is the longest time between the arrivals of two packets of a publication, in ms.
	LongestGap float64 `json:"longest_gap_ms"`
}

// ECN has the codepoints of the received RTP packets.
type ECN struct {
	NotECT uint64 `json:"not_ect"`
	ECT0   uint64 `json:"ect0"`
	ECT1   uint64 `json:"ect1"`
	CE     uint64 `json:"ce"`
	// CEShare is the share of CE in packets that are not Not-ECT, 0 to 1.
	CEShare float64 `json:"ce_share"`
	// L4S is the last state of L4S on the hop that the server reported, nil if the server reported none.
	L4S *string `json:"l4s"`
}

// Count sets the counts and the share.
func (e *ECN) Count(c client.ECNCounts) {
	e.NotECT, e.ECT0, e.ECT1, e.CE = c.NotECT, c.ECT0, c.ECT1, c.CE
	if capable := c.ECT0 + c.ECT1 + c.CE; capable > 0 {
		e.CEShare = round(float64(c.CE)/float64(capable), 6)
	}
}

// Redundancy has the received RTP packets of each path.
type Redundancy struct {
	Paths []Path `json:"paths"`
	// CostFactor is the number of packets that arrived, divided by the number of different packets.
	CostFactor float64 `json:"cost_factor"`
}

// Path has the received RTP packets of one path.
type Path struct {
	// First counts packets that no other path had delivered before, Repeated the others. Only counts packets that no
	// other path has delivered.
	First    uint64 `json:"packets_first"`
	Repeated uint64 `json:"packets_repeated"`
	Only     uint64 `json:"packets_only"`
}

// CountPaths sets the packets of each path. Without a second path there are none.
func (s *Summary) CountPaths(c client.RedundancyStats) {
	if len(c.Received) == 0 {
		return
	}
	s.Redundancy = &Redundancy{}
	first, all := uint64(0), uint64(0)
	for _, p := range c.Received {
		s.Redundancy.Paths = append(s.Redundancy.Paths, Path(p))
		first, all = first+p.First, all+p.First+p.Repeated
	}
	s.Redundancy.CostFactor = round(float64(all)/float64(max(first, 1)), 3)
}

// Render has the counters of rendering. Frames are frames of publications, with all tiles.
type Render struct {
	Drawn int64 `json:"frames_drawn"`
	// Superseded frames were due to be shown and replaced by the next frame before drawing.
	Superseded int64 `json:"frames_superseded"`
	// Wait is the time from the last decoded tile to the start of drawing, including the playout delay. Draw is the
	// time of drawing. Latency is the time from capture to the end of drawing.
	Wait    distribution.Percentiles `json:"wait_ms"`
	Draw    distribution.Percentiles `json:"draw_ms"`
	Latency distribution.Percentiles `json:"latency_ms"`
	// Pictures is the number of pictures written. PicturesDropped is the number of pictures that were skipped because
	// another picture was being written.
	Pictures        int64 `json:"pictures_written"`
	PicturesDropped int64 `json:"pictures_dropped"`
}

// round rounds to the given number of decimal digits.
func round(v float64, digits int) float64 {
	scale := math.Pow10(digits)
	return math.Round(v*scale) / scale
}

// Add adds the counters of a tile.
func (f *Figures) Add(t *Figures) {
	f.Expected += t.Expected
	f.Decoded += t.Decoded
	f.Undecodable += t.Undecodable
	f.Missing += t.Missing
	f.Skipped += t.Skipped
	f.DroppedByServer += t.DroppedByServer
	f.Refused += t.Refused
	f.Held += t.Held
	f.Switches += t.Switches
	f.Bitrate += t.Bitrate
	f.PacketsReceived += t.PacketsReceived
	f.PacketsLost += t.PacketsLost
	f.NACKsSent += t.NACKsSent
	f.PacketsRecovered += t.PacketsRecovered
}
