package summary

import (
	"fmt"
	"strings"

	"github.com/volsfu/volsfu/pkg/frametimes"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Text formats the summary for a terminal.
func (s *Summary) Text() string {
	var b strings.Builder
	for i := range s.Publications {
		t := &s.Publications[i]
		fmt.Fprintf(&b, "%s/%s tile %d: %d of %d frames decoded, %.1f fps, %v, latency %s ms\n",
			t.Participant, t.Publication, t.Tile, t.Decoded, t.Expected, t.FPS, volumetric.Bitrate(t.Bitrate),
			t.Latency.Text())
	}
	fmt.Fprintf(&b, "together: %d of %d frames decoded (%d undecodable, %d missing, %d skipped, %d dropped by the "+
		"server), %d tiles held, %d switches\n",
		s.Decoded, s.Expected, s.Undecodable, s.Missing, s.Skipped, s.DroppedByServer, s.Held, s.Switches)
	fmt.Fprintf(&b, "%.1f fps, %v, packets: %d received, %d lost, %d recovered, %d NACKs sent\n",
		s.FPS, volumetric.Bitrate(s.Bitrate), s.PacketsReceived, s.PacketsLost, s.PacketsRecovered, s.NACKsSent)
	if e := &s.ECN; e.ECT0+e.ECT1+e.CE > 0 {
		fmt.Fprintf(&b, "ECN: %.2f %% of %d packets marked", 100*e.CEShare, e.ECT0+e.ECT1+e.CE)
		if e.L4S != nil {
			fmt.Fprintf(&b, ", L4S is %s", *e.L4S)
		}
		b.WriteByte('\n')
	}
	if e := &s.Encryption; e.Opened+e.Refused.Total() > 0 {
		fmt.Fprintf(&b, "encryption: %d frames and packets decrypted, %d refused\n", e.Opened, e.Refused.Total())
	}
	if r := s.Redundancy; r != nil {
		for i, p := range r.Paths {
			fmt.Fprintf(&b, "path %d: %d packets, %d of them on no other path\n", i, p.First+p.Repeated, p.Only)
		}
	}
	fmt.Fprintf(&b, "latency %s ms, quality change %s ms, skew to sound %s ms (median/95 %%/99 %%/largest)\n",
		s.Latency.Text(), s.QualityChange.Text(), s.Skew.Text())
	if r := s.Render; r != nil {
		fmt.Fprintf(&b, "drawn: %d frames, %d superseded, after %s ms, for %s ms; latency to shown %s ms\n",
			r.Drawn, r.Superseded, r.Wait.Text(), r.Draw.Text(), r.Latency.Text())
	}
	b.WriteString(s.Layers.Table())
	for i := range s.Pictures {
		p := &s.Pictures[i]
		fmt.Fprintf(&b, "picture %s/%s: %d frames received (%d undecodable), %.1f fps, %v, longest gap %.0f ms\n",
			p.Participant, p.Publication, p.Frames, p.Undecodable, p.FPS, volumetric.Bitrate(p.Bitrate), p.LongestGap)
	}
	if s.Audio.PacketsReceived > 0 {
		fmt.Fprintf(&b, "sound: %d packets received, %d lost\n", s.Audio.PacketsReceived, s.Audio.PacketsLost)
	}
	return b.String()
}

// Table formats the layers as a table. The result is empty if nothing was measured.
func (l *Layers) Table() string {
	if l == nil || len(l.Layers) == 0 {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "layers of %d tile frames, %d of them with every stage, in ms\n", l.Frames, l.Complete)
	fmt.Fprintf(&b, "  %-22s %9s %9s %9s %9s %9s %9s %11s\n", "", "mean", "median", "95 %", "99 %", "largest",
		"± at most", "± symmetric")
	for i := range l.Layers {
		r := &l.Layers[i]
		fmt.Fprintf(&b, "  %-22s %9.3f %9.3f %9.3f %9.3f %9.3f %9.3f %11.3f\n", r.Name, r.Mean, *r.P50, *r.P95, *r.P99,
			*r.Max, r.Bound, r.Uncertainty)
	}
	for _, c := range l.Clocks {
		fmt.Fprintf(&b, "  clock of the %s: %s", c.Host, c.Source)
		if c.Source == frametimes.SourceEstimated {
			fmt.Fprintf(&b, ", %.0f µs added, ± %.0f µs at most, ± %.0f µs if the path is symmetric", c.Offset, c.Bound,
				c.Uncertainty)
		} else if c.Disagreement != 0 {
			fmt.Fprintf(&b, ", but the estimate finds it %.0f µs off, ± %.0f µs", -c.Disagreement,
				c.Bound-max(c.Disagreement, -c.Disagreement))
		}
		b.WriteByte('\n')
	}
	b.WriteString(hardwareLine(l))
	return b.String()
}

// hardwareLine reports that timestamps of network cards are absent, or that timestamps of kernels are absent, too.
func hardwareLine(l *Layers) string {
	kernel, hardware := false, false
	for i := range l.Layers {
		name := l.Layers[i].Name
		kernel = kernel || strings.HasSuffix(name, "_software")
		hardware = hardware || strings.HasSuffix(name, "_hardware")
	}
	switch {
	case hardware:
		return ""
	case kernel:
		return "  stamps of network cards: absent\n"
	default:
		return "  stamps of kernels and network cards: absent\n"
	}
}
