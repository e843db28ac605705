//go:build race

package feedback_test

// loopFrames is the number of frames of a repairLoop: fewer, because the race detector makes each ten times as slow.
const loopFrames = 200
