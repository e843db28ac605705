package trust

import (
	"testing"

	"github.com/volsfu/volsfu/test/long"
)

// TestShortNetworks has two clients join from each network.
func TestShortNetworks(t *testing.T) {
	long.Test(t)
	measureShort(t, newShort(t, "volsfu", "volpeer"), nil, 1)
}

// TestShortRelay measures the relay, and attacks it.
func TestShortRelay(t *testing.T) {
	long.Test(t)
	measureShort(t, newShort(t), []string{"packets lost", "frames of others lost"}, 2, 4)
}
