//go:build !race

package feedback_test

// loopFrames is how many frames a repairLoop sends.
const loopFrames = 1000
