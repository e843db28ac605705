package duplication

import "github.com/volsfu/volsfu/lab/experiment/claims"

// measurements are the parts of each check, in the order of titles.
var measurements = [len(titles)][]measurement{
	4: {onTable(claims.NewTableThroughput)},
	5: {onTable(claims.NewTableCost)},
}
