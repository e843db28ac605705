package codectest

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"github.com/volsfu/volsfu/pkg/codec"
)

func testCapabilities(t *testing.T, c codec.Codec) {
	can := c.Capabilities()
	for _, steps := range [][]int{can.Steps, can.SequentialSteps} {
		if len(steps) > 0 && (steps[0] != 0 || steps[len(steps)-1] > 10 || !slices.IsSorted(steps)) {
			t.Errorf("steps are %v, want ascending speeds from 0", steps)
		}
	}
	if len(can.Steps) == 0 || can.MaxPoints < 1 || can.ExactColors && !can.Colors {
		t.Errorf("capabilities are %+v, want steps, points, and no exact colours without colours", can)
	}
	if _, ordered := c.NewEncoder().(codec.OrderedEncoder); can.Ordered && !ordered {
		t.Error("encoders do not report the order")
	}
	// Speeds of one step result in equal frames, except for a few bytes that may contain the speed.
	encoder, cloud := c.NewEncoder(), Cloud(7, 1500)
	for _, variant := range variants(c) {
		for speed := range 11 {
			params := with(variant, 11, speed)
			lowest := params
			lowest.Speed = can.Step(params)
			a, b := mustEncode(t, encoder, cloud, params), mustEncode(t, encoder, cloud, lowest)
			differing := 0
			for i := range min(len(a), len(b)) {
				if a[i] != b[i] {
					differing++
				}
			}
			if len(a) != len(b) || differing > 10 {
				t.Errorf(
					"speeds %d and %d give different frames, want them in steps of their own (%+v)",
					speed,
					lowest.Speed,
					variant,
				)
			}
		}
	}
}

// testOrder compares the reported order with the decoded cloud.
func testOrder(t *testing.T, c codec.Codec) {
	encoder, ordered := c.NewEncoder().(codec.OrderedEncoder)
	if !ordered {
		t.Skip("skipped: the codec's encoders do not report the order")
	}
	decoder := c.NewDecoder()
	var order []uint32
	var frame []byte
	for _, points := range []int{1, 2, 3, 70, 1000, 300, 0} {
		cloud := Cloud(uint64(points), points)
		// Coinciding points have an order, too.
		for i := range points / 4 {
			cloud.Positions[i] = cloud.Positions[points/2]
		}
		for _, variant := range variants(c) {
			for _, bits := range []int{3, 20} {
				for _, speed := range speeds(c, variant) {
					params := with(variant, bits, speed)
					var err error
					if frame, order, err = encoder.EncodeOrdered(frame[:0], order, cloud, params); err != nil {
						t.Fatal(err)
					}
					decoded, want := mustDecode(t, decoder, frame), Quantized(cloud, params)
					if len(order) != points || decoded.Len() != points {
						t.Fatalf("order of %d, %d points decoded, want %d", len(order), decoded.Len(), points)
					}
					seen := make([]bool, points)
					for i, at := range order {
						if seen[at] {
							t.Fatalf("%+v: point %d is there twice", params, at)
						}
						seen[at] = true
						if decoded.Positions[i] != want.Positions[at] ||
							c.Capabilities().ExactColors && decoded.Colors[i] != want.Colors[at] {
							t.Fatalf(
								"%+v: decoded point %d is %v %v, want that of %d, %v %v",
								params,
								i,
								decoded.Positions[i],
								decoded.Colors[i],
								at,
								want.Positions[at],
								want.Colors[at],
							)
						}
					}
				}
			}
		}
	}
	before := []byte("before")
	after, order, err := encoder.EncodeOrdered(before, order, Cloud(1, 3), codec.Params{})
	if !errors.Is(err, codec.ErrParams) || !bytes.Equal(after, before) || len(order) != 0 {
		t.Errorf("got %q, %v, %v, want dst unchanged, no order and ErrParams", after, order, err)
	}
}
