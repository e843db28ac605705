//go:build !cgo || portable

package draco

import (
	"errors"
	"testing"

	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/codec/codectest"
	"github.com/volsfu/volsfu/pkg/pointcloud"
)

// TestOnlyDecodes expects the points of the test vectors, and an error from the encoder.
func TestOnlyDecodes(t *testing.T) {
	c, err := codec.ByName("draco")
	if err != nil || c.Capabilities().Encodes {
		t.Fatalf("got %v, %v, want draco, which only decodes", c, err)
	}
	if _, err := c.NewEncoder().Encode(nil, codectest.Cloud(1, 1), codec.Params{}); !errors.Is(err, ErrUnavailable) {
		t.Errorf("got %v, want how to build a program that encodes", err)
	}
	for _, frame := range codectest.Valid() {
		if frame.Codec != c.FourCC().String() {
			continue
		}
		cloud := new(pointcloud.Cloud)
		if err := c.NewDecoder().Decode(cloud, frame.Data); err != nil || cloud.Len() != frame.Points {
			t.Errorf("%s: %d points, %v, want %d", frame.Name, cloud.Len(), err, frame.Points)
		}
	}
	codectest.TestHostile(t, c)
}
