package hardening

import (
	"context"
	"time"

	"github.com/volsfu/volsfu/internal/lab"
	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/codec/codectest"
	"github.com/volsfu/volsfu/pkg/pointcloud"
)

// Bounds of what one hostile frame may take.
const (
	mostDecoderMiB = 64
	mostDecoderMS  = 200
)

// attackDecoders decodes frames that claim more than they hold. Frames of codecs that this program was built without are
// counted. The decoders of pages are bounded by the same frames in clients/web/test/unit/hostile.test.ts.
func attackDecoders(context.Context, *check) ([]lab.Line, error) {
	var decoded, absent, accepted int64
	var memory uint64
	var longest time.Duration
	for _, frame := range codectest.Hostile() {
		c, err := codec.ByFourCC(codec.FourCC([]byte(frame.Codec)))
		if err != nil {
			absent++
			continue
		}
		var cloud pointcloud.Cloud
		decoder := c.NewDecoder()
		cost := codectest.Measure(func() { err = decoder.Decode(&cloud, frame.Data) })
		memory, longest = max(memory, cost.Heap, cost.Resident), max(longest, cost.CPU)
		if decoded++; err == nil {
			accepted++
		}
	}
	return []lab.Line{
		lab.Stated("hostile frames decoded", float64(decoded), ""),
		lab.Stated("hostile frames of codecs that are not built in", float64(absent), ""),
		lab.Exactly("hostile frames without an error", accepted, "", 0),
		lab.AtMost("memory for one frame", float64(memory)/(1<<20), "MiB", mostDecoderMiB),
		lab.AtMost("processor time for one frame", float64(longest)/float64(time.Millisecond), "ms", mostDecoderMS),
	}, nil
}
