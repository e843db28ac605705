package reload

import (
	"os"
	"slices"
	"time"
)

// State is the state of a file: two states differ if the file was written or replaced in between. The state of a file
// that cannot be examined is zero.
type State struct {
	Modified time.Time
	Size     int64
}

// StatesOf returns the states of files. Symbolic links are followed: certbot and Kubernetes replace links.
func StatesOf(paths []string) []State {
	states := make([]State, len(paths))
	for i, path := range paths {
		if info, err := os.Stat(path); err == nil {
			states[i] = State{info.ModTime(), info.Size()}
		}
	}
	return states
}

// Watch decides when files that belong together are read, such as a certificate and its key. A program that renews them
// writes one after the other: they are read when they have not changed between two steps. Use NewWatch.
type Watch struct {
	// read are the states of the last reading, seen those of the last step.
	read, seen []State
}

// NewWatch returns the watch of files that are read in the given states.
func NewWatch(states []State) *Watch { return &Watch{states, states} }

// Step takes the present states and reports whether the files have to be read. Each states are reported once: invalid
// files are not read until they change again.
func (w *Watch) Step(states []State) bool {
	settled := slices.Equal(states, w.seen)
	w.seen = states
	if !settled || slices.Equal(states, w.read) {
		return false
	}
	w.read = states
	return true
}

// Read records that the files were read in the given states without Step.
func (w *Watch) Read(states []State) { w.read, w.seen = states, states }
