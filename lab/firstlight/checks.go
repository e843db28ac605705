package firstlight

import (
	"github.com/volsfu/volsfu/internal/config"
	"github.com/volsfu/volsfu/internal/sfu/demand"
	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/test/testbed"
)

// settings returns the configuration of a server whose links are not measured. The estimate starts at a rate that
// carries all tracks, and publishers send all tracks.
func settings() config.Config {
	c := testbed.ConferenceConfig()
	c.Forward.Congestion.Min, c.Forward.Congestion.Start = testbed.Everything, testbed.Everything
	c.Rooms.Suppression.Policy = demand.Warm
	return c
}

// Checks returns the checks of first light, in the order of their numbers.
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
