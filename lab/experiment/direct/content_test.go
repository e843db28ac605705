package direct

import (
	"errors"
	"fmt"
	"testing"
)

// TestNoCamera: only the errors of a host without a camera count, in one line.
func TestNoCamera(t *testing.T) {
	absent := errors.Join(ErrMeeting, fmt.Errorf("program a: exit status 1; last output: vollab: --source: no "+
		"RealSense camera"), errors.New("the same again"))
	if got, want := NoCamera(absent), "the producer's host has no camera: no RealSense camera"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	for _, err := range []error{nil, ErrMeeting, errors.New("--source: no RealSense camera")} {
		if got := NoCamera(err); got != "" {
			t.Errorf("%v: got %q", err, got)
		}
	}
}
