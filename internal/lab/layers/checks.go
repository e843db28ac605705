package layers

import (
	"time"

	"github.com/volsfu/volsfu/internal/lab"
)

// Checks are the checks of layers, in the order of their numbers.
func Checks(progress lab.Progress) []lab.Check {
	return []lab.Check{
		&Adding{Progress: progress, Length: 15 * time.Second},
		&Residence{Progress: progress, Rates: []float64{paperRate, 20, 15, 10, 5, 2}, Length: 10 * time.Second},
	}
}
