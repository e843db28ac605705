//go:build race

package feedback_test

// loopFrames is how many frames a repairLoop sends: fewer where the race detector makes each ten times as slow.
const loopFrames = 200
