package main

import (
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/volsfu/volsfu/cmd/volpeer/internal/distribution"
	"github.com/volsfu/volsfu/cmd/volpeer/internal/summary"
	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// halfAndMost is the median and the 95th percentile in milliseconds, for people.
func halfAndMost(d *distribution.Distribution) string {
	if d.Count() == 0 {
		return "-"
	}
	ms := func(q float64) float64 { return float64(d.Quantile(q)) / float64(time.Millisecond) }
	return fmt.Sprintf("%.1f/%.1f", ms(0.5), ms(0.95))
}

// rate is a bitrate for people.
func rate(bytes int64, took time.Duration) string {
	return fmt.Sprintf("%.1f Mbit/s", float64(bytes)*8/1e6/took.Seconds())
}

// tell logs what happened in the room.
func tell(log *slog.Logger, e client.Event) {
	switch e := e.(type) {
	case client.Connected:
		log.Info("connected")
	case client.ParticipantJoined:
		log.Info("participant joined", "participant", e.Participant.Identity)
	case client.ParticipantLeft:
		log.Info("participant left", "participant", e.Identity, "reason", e.Reason)
	case client.Published:
		log.Info("publication", "participant", e.Participant, "publication", e.Publication.Name,
			"tiles", len(e.Publication.Tiles), "qualities", len(e.Publication.Qualities))
	case client.Unpublished:
		log.Info("publication ended", "participant", e.Publication.Participant, "publication", e.Publication.Publication)
	case client.Uplink:
		log.Info("uplink", "carries", e.Estimate, "tracks given up", len(e.GaveUp))
	case client.Interrupted:
		log.Warn("connection to the server broke, resuming", "error", e.Err)
	case client.Resumed:
		log.Info("resumed")
	case client.Closing:
		log.Warn("the server is closing", "code", e.Code, "message", e.Message, "grace", e.Grace)
	}
}

// watchedLine is what is known of one publication, for people. since is the sum of its tiles' figures in the stretch of time.
func watchedLine(ref volumetric.PublicationRef, qualities []string, frames float64, bytes int64, took time.Duration, latency *distribution.Distribution, total *summary.Figures) string {
	return fmt.Sprintf("%s  %.1f fps  quality %s  %s  latency %s ms  held %d  undecodable %d  missing %d  skipped %d",
		ref, frames, strings.Join(qualities, " "), rate(bytes, took), halfAndMost(latency), total.Held, total.Undecodable, total.Missing, total.Skipped)
}

// report is a summary for people.
func report(s *summary.Summary) string {
	var b strings.Builder
	for i := range s.Publications {
		t := &s.Publications[i]
		fmt.Fprintf(&b, "%s/%s tile %d: %d of %d frames decoded, %.1f fps, %v, latency %s ms\n",
			t.Participant, t.Publication, t.Tile, t.Decoded, t.Expected, t.FPS, volumetric.Bitrate(t.Bitrate), percentiles(t.Latency))
	}
	fmt.Fprintf(&b, "together: %d of %d frames decoded (%d undecodable, %d missing, %d skipped, %d dropped by the server), %d tiles held, %d switches\n",
		s.Decoded, s.Expected, s.Undecodable, s.Missing, s.Skipped, s.DroppedByServer, s.Held, s.Switches)
	fmt.Fprintf(&b, "%.1f fps, %v, packets: %d received, %d lost, %d recovered, %d NACKs sent\n",
		s.FPS, volumetric.Bitrate(s.Bitrate), s.PacketsReceived, s.PacketsLost, s.PacketsRecovered, s.NACKsSent)
	fmt.Fprintf(&b, "latency %s ms, quality change %s ms, skew to sound %s ms (median/95 %%/99 %%/largest)\n",
		percentiles(s.Latency), percentiles(s.QualityChange), percentiles(s.Skew))
	if r := s.Render; r != nil {
		fmt.Fprintf(&b, "drawn: %d frames, %d superseded, after %s ms, for %s ms; latency to shown %s ms\n",
			r.Drawn, r.Superseded, percentiles(r.Wait), percentiles(r.Draw), percentiles(r.Latency))
	}
	b.WriteString(layersTable(s.Layers))
	if s.Audio.PacketsReceived > 0 {
		fmt.Fprintf(&b, "sound: %d packets received, %d lost\n", s.Audio.PacketsReceived, s.Audio.PacketsLost)
	}
	return b.String()
}

func percentiles(p summary.Percentiles) string {
	if p.P50 == nil {
		return "-"
	}
	text := make([]string, 0, 4)
	for _, v := range []*float64{p.P50, p.P95, p.P99, p.Max} {
		text = append(text, strconv.FormatFloat(*v, 'f', 1, 64))
	}
	return strings.Join(text, "/")
}
