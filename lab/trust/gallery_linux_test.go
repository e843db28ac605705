package trust

import (
	"testing"

	"github.com/volsfu/volsfu/test/long"
)

// TestShortDownlinks measures one downlink for some seconds.
func TestShortDownlinks(t *testing.T) {
	long.Test(t)
	measureShort(t, newShort(t), nil, 8)
}
