package paper001

import (
	"embed"

	"github.com/volsfu/volsfu/lab/experiment"
)

//go:embed *.yaml
var files embed.FS

// Collection returns the experiments of this package.
func Collection() experiment.Collection {
	return experiment.Collection{Files: files, Scenarios: map[string]experiment.Scenario{
		"paper001/dance": experiment.Define(defaultDance(), danceQuantities, runDance),
		"paper001/session": experiment.OnHosts(experiment.Define(defaultSession(), sessionQuantities, runSession),
			hostServer, hostPublisher, hostWatcher),
	}}
}
