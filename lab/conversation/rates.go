package conversation

import (
	"context"
	"errors"
	"time"
)

// Rates are the tried frame rates, the paper's first.
var Rates = []float64{30, 20, 15, 10, 7.5, 5, 3}

const (
	// trial is the duration of the trial of a rate.
	trial = 2 * time.Second
	// carried is the least share of the frames that must arrive for a rate to count as carried.
	carried = 0.98
)

// Carries reports whether nearly all due frames arrived at every receiver.
func (c *Conversation) Carries() bool { return float64(c.Least()) >= carried*float64(c.Due) }

// CarriedRate returns the highest of Rates at which nearly all frames arrive. If no other rate is carried, CarriedRate
// returns the last rate without a trial.
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
