package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/volsfu/volsfu/cmd/volpeer/internal/summary"
	"github.com/volsfu/volsfu/internal/peer"
	"github.com/volsfu/volsfu/internal/peer/distribution"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// watchedLine is what is known of one publication, for people. since is the sum of its tiles' figures in the stretch of time.
func watchedLine(ref volumetric.PublicationRef, qualities []string, frames float64, bytes int64, took time.Duration, latency *distribution.Distribution, total *summary.Figures) string {
	return fmt.Sprintf("%s  %.1f fps  quality %s  %s  latency %s ms  held %d  undecodable %d  missing %d  skipped %d",
		ref, frames, strings.Join(qualities, " "), peer.RateText(bytes, took), latency.Text(), total.Held, total.Undecodable, total.Missing, total.Skipped)
}
