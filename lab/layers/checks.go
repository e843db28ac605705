package layers

import (
	"time"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/lab/conversation"
)

// Checks returns the checks of layers, in the order of their numbers.
func Checks(progress lab.Progress) []lab.Check {
	return []lab.Check{
		&Adding{Progress: progress, Length: 15 * time.Second},
		&Residence{Progress: progress, Plan: conversation.DefaultPlan(), Rates: conversation.Rates,
			Length: 10 * time.Second},
	}
}
