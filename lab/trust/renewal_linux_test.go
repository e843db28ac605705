package trust

import (
	"testing"

	"github.com/volsfu/volsfu/test/long"
)

// TestShortRenewals replaces the files of a server with one receiver. A busy machine delays frames.
func TestShortRenewals(t *testing.T) {
	long.Test(t)
	measureShort(t, newShort(t, "volsfu"), []string{"frames lost"}, 3)
}
