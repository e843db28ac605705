package paper000

import (
	"context"

	"github.com/volsfu/volsfu/lab/rival"
)

// The congestion controls of competitors.
const (
	rivalCubic  = "cubic"
	rivalPrague = "prague"
)

// competitors are running flows.
type competitors interface {
	// Wait waits for the end, and returns the rate of all flows together, second by second.
	Wait(ctx context.Context) ([]rival.Rate, error)
	Stop()
}
