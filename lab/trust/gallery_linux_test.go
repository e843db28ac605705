package trust

import (
	"testing"

	"github.com/volsfu/volsfu/test/long"
)

// TestShortDownlinks measures one downlink for some seconds. Pictures of a busy machine freeze.
func TestShortDownlinks(t *testing.T) {
	long.Test(t)
	measureShort(t, newShort(t), []string{"freezes"}, 8)
}
