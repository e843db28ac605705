package conversation

import (
	"context"
	"errors"
	"time"
)

// Rates are the frame rates that are tried, the paper's first.
var Rates = []float64{30, 20, 15, 10, 7.5, 5, 3}

const (
	// trial is how long a rate is tried.
	trial = 2 * time.Second
	// carried is the share of the frames that have to come for a rate to count as carried.
	carried = 0.98
)

// Carries tells whether nearly all frames that fell due came to every receiver.
func (c *Conversation) Carries() bool { return float64(c.Least()) >= carried*float64(c.Due) }

// CarriedRate is the highest of Rates of which nearly all frames come. The last one is taken whatever comes of it.
func (p Plan) CarriedRate(ctx context.Context, volsfu string) (float64, error) {
	for _, rate := range Rates[:len(Rates)-1] {
		c, err := p.Run(ctx, volsfu, rate, trial)
		if errors.Is(err, ErrNothing) {
			continue
		}
		if err != nil {
			return 0, err
		}
		if c.Carries() {
			return rate, nil
		}
	}
	return Rates[len(Rates)-1], nil
}
