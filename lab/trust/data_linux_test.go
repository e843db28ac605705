package trust

import (
	"testing"

	"github.com/volsfu/volsfu/test/long"
)

// TestShortDataMessages exchanges some messages.
func TestShortDataMessages(t *testing.T) {
	long.Test(t)
	measureShort(t, newShort(t, "volsfu", "vollab"), nil, 7)
}
