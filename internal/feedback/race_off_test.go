//go:build !race

package feedback_test

// loopFrames is the number of frames of a repairLoop.
const loopFrames = 1000
