package duplication

import "github.com/volsfu/volsfu/lab/experiment/claims"

// measurements are the parts of each check, in the order of titles.
var measurements = [len(titles)][]measurement{
	0: {identity},
	1: {cost},
	2: {trips},
	3: {residual},
	4: {onTable(claims.NewTableThroughput)},
	5: {onTable(claims.NewTableCost)},
	6: {reaction, unknownPaths},
	7: {primaryDead, onTable(claims.NewOutages)},
	8: {controllerKilled, edgesKilled, receiverGone},
}
