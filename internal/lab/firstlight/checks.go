package firstlight

import "github.com/volsfu/volsfu/internal/lab"

// Checks are the checks of first light, in the order of their numbers.
func Checks(progress lab.Progress) []lab.Check {
	return []lab.Check{
		NewDemo(progress),
		NewSources(progress),
		NewSwitching(progress),
		NewLarge(progress),
		NewLoss(progress),
		NewRoom(progress),
		NewChurn(progress),
	}
}
