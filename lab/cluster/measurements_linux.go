package cluster

// measurements are the parts of each check, by the check's number.
var measurements = map[int][]measurement{
	1:  {spread},
	2:  {trunkPackets},
	3:  {relayed},
	10: {placed},
}
