package rival

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/volsfu/volsfu/internal/ecn"
	"github.com/volsfu/volsfu/internal/netem"
	"github.com/volsfu/volsfu/lab"
)

// Summary has the figures of a Sender.
type Summary struct {
	// Seconds is the length of the transfer, Mbps the mean rate of acknowledged segments with headers, RTT the smoothed
	// round-trip time at the end, in ms.
	Seconds float64 `json:"seconds"`
	Mbps    float64 `json:"mbps"`
	RTT     float64 `json:"rtt_ms"`
	// Sent, Acknowledged, Marked and Lost count segments. Marked segments are also acknowledged.
	Sent         uint64 `json:"sent"`
	Acknowledged uint64 `json:"acknowledged"`
	Marked       uint64 `json:"marked"`
	Lost         uint64 `json:"lost"`
	// Bleached counts acknowledged segments that arrived neither as ECT(1) nor as CE: the path does not carry L4S.
	Bleached uint64 `json:"bleached"`
	// Timeouts counts timeouts without any acknowledgement.
	Timeouts uint64 `json:"timeouts"`
	// Samples are the figures over time.
	Samples []Sample `json:"samples"`
}

// Sample covers the time since the previous Sample.
type Sample struct {
	// Seconds is the end of the time since the beginning of the transfer.
	Seconds float64 `json:"t_s"`
	// Mbps is the rate of acknowledged segments, RTT the smoothed round-trip time in ms, Marked the share of
	// acknowledged segments that were marked, Alpha the sender's average of this share.
	Mbps   float64 `json:"mbps"`
	RTT    float64 `json:"rtt_ms"`
	Marked float64 `json:"marked"`
	Alpha  float64 `json:"alpha"`
	// Lost counts segments.
	Lost uint64 `json:"lost"`
}

// count counts the codepoint of an acknowledged segment.
func (s *Summary) count(codepoint ecn.Codepoint) {
	if !codepoint.L4S() {
		s.Bleached++
	}
}

// sample ends the current Sample if sampleInterval has passed.
func (s *Sender) sample(now time.Duration) {
	if now-s.sampled >= sampleInterval {
		s.close(now)
	}
}

// close ends the current Sample.
func (s *Sender) close(now time.Duration) {
	stats := s.prague.Stats()
	acknowledged := stats.Acknowledged - s.last.Acknowledged
	s.summary.Samples = append(s.summary.Samples, Sample{
		Seconds: now.Seconds(),
		Mbps:    megabits(acknowledged, now-s.sampled),
		RTT:     lab.Milliseconds(stats.RTT),
		Marked:  float64(stats.Marked-s.last.Marked) / max(float64(acknowledged), 1),
		Alpha:   stats.Alpha,
		Lost:    stats.Lost - s.last.Lost,
	})
	s.last, s.sampled = stats, now
}

// megabits returns the rate of segments in Mbit/s.
func megabits(segments uint64, in time.Duration) float64 {
	return float64(segments) * netem.SegmentBytes * 8 / 1e6 / max(in.Seconds(), 1e-9)
}

// finish returns the summary at the time of the latest sample.
func (s *Sender) finish() *Summary {
	sum := s.summary
	stats := s.prague.Stats()
	sum.Seconds, sum.Mbps, sum.RTT = s.sampled.Seconds(), megabits(s.last.Acknowledged, s.sampled),
		lab.Milliseconds(stats.RTT)
	sum.Sent, sum.Acknowledged, sum.Marked, sum.Lost, sum.Timeouts = stats.Sent, stats.Acknowledged, stats.Marked,
		stats.Lost, stats.Timeouts
	return &sum
}

// WriteJSON writes the summary as one JSON object.
func (s *Summary) WriteJSON(w io.Writer) error { return writeJSON(w, s) }

// WriteText writes the summary as a few lines.
func (s *Summary) WriteText(w io.Writer) error {
	_, err := fmt.Fprintf(w, "%.1f s, %.2f Mbit/s, round trip %.2f ms\n"+
		"segments sent %d, acknowledged %d, marked %d, lost %d, bleached %d; timeouts %d\n", s.Seconds, s.Mbps, s.RTT,
		s.Sent, s.Acknowledged, s.Marked, s.Lost, s.Bleached, s.Timeouts)
	return err
}

// WriteJSON writes the counts as one JSON object.
func (s *SinkSummary) WriteJSON(w io.Writer) error { return writeJSON(w, s) }

// WriteText writes the counts as one line.
func (s *SinkSummary) WriteText(w io.Writer) error {
	_, err := fmt.Fprintf(w, "segments %d (%.1f MB): Not-ECT %d, ECT(1) %d, ECT(0) %d, CE %d; other datagrams %d\n",
		s.Segments, float64(s.Bytes)/1e6, s.NotECT, s.ECT1, s.ECT0, s.CE, s.Unknown)
	return err
}

func writeJSON(w io.Writer, value any) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(value)
}
