//go:build !linux

package cluster

// measurements are the parts of each check, by the check's number. The others need Linux.
var measurements = map[int][]measurement{10: {placed}, 11: {viewers}}
