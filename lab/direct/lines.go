package direct

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/volsfu/volsfu/internal/peer"
	"github.com/volsfu/volsfu/lab/direct/stages"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

func writeJSON(out io.Writer, v any) error { return json.NewEncoder(out).Encode(v) }

// stageOrder has the stages of a frame in the order of printing.
var stageOrder = []string{
	"capture", "encode_wait", "sample", "encode", "send_wait", "send", "network", "receive", "reassemble",
	"decode_wait", "decode", "show",
	"capture_to_decoded", "capture_to_shown",
}

// summaryText formats a summary.
func summaryText(s *Summary) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, transport %s, mode %s: %.1f fps, %v on the wire\n", s.Role, s.Transport, s.Mode, s.FPS,
		volumetric.Bitrate(s.Bitrate))
	fmt.Fprintf(&b, "%d frames sent, %d intact, %d corrupt, %d lost; %d unsent; reliability %s\n", s.Sent, s.Intact,
		s.Corrupt, s.Lost, s.Unsent, share(s.Reliability))
	fmt.Fprintf(&b, "%d decoded, %d superseded, %d undecodable\n", s.Decoded, s.Report.Superseded, s.Undecodable)
	if s.Targeted > 0 {
		fmt.Fprintf(&b, "%d of %d frames within 5 %% of their target, off by %s %%\n", s.WithinTarget, s.Targeted,
			s.OffTarget.Text())
	}
	for _, name := range stageOrder {
		if p := s.Stages[name]; p.P50 != nil {
			fmt.Fprintf(&b, "%-19s %s ms\n", strings.ReplaceAll(name, "_", " "), p.Text())
		}
	}
	b.WriteString("(median/95 %/99 %/largest)\n")
	return b.String()
}

// share formats a fraction, or returns "-" if it is unknown.
func share(part *float64) string {
	if part == nil {
		return "-"
	}
	return fmt.Sprintf("%.2f %%", 100**part)
}

// progress formats the difference between two reports.
func progress(now, before *stages.Report, took time.Duration, estimate volumetric.Bitrate) string {
	frames, per := now.Sent-before.Sent, func(sum int64, count int64) int64 { return sum / max(count, 1) }
	line := fmt.Sprintf("%.1f fps decoded  %d points  %s", float64(now.Decoded-before.Decoded)/took.Seconds(),
		per(now.Points-before.Points, frames),
		peer.RateText(now.Wire-before.Wire, took))
	if estimate > 0 {
		line += fmt.Sprintf("  of %v estimated", estimate)
	}
	return line + fmt.Sprintf("  lost %d  corrupt %d  unsent %d  capture to decoded %s ms", now.Lost, now.Corrupt,
		now.Unsent, now.Stages["capture_to_decoded"].Text())
}
