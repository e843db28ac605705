//go:build !race

package srtp

const raceDetector = false
