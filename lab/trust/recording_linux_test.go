package trust

import (
	"testing"

	"github.com/volsfu/volsfu/test/long"
)

// TestShortRecording records, kills a server and replays for some seconds each. CPU time and the age of the last frame
// need a machine of its own.
func TestShortRecording(t *testing.T) {
	long.Test(t)
	measureShort(t, newShort(t, "volsfu", "volpeer"), []string{"not read in time", "missing", "discarded"}, 10)
}
