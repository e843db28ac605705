package cluster

// measurements are the parts of each check, by the check's number.
var measurements = map[int][]measurement{
	1:  {spread},
	2:  {trunkPackets},
	3:  {relayed},
	4:  {relayCost},
	5:  {losses},
	6:  {failures},
	7:  {drain, upgrade},
	8:  {natsGone},
	9:  {partition},
	10: {placed},
	11: {viewers},
	12: {alone},
	13: {idle},
	14: {rollout, eviction},
}
