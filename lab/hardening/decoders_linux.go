package hardening

import (
	"context"
	"errors"
	"time"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/lab/suite"
	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/codec/codectest"
	"github.com/volsfu/volsfu/pkg/pointcloud"
	"github.com/volsfu/volsfu/test/claim"
)

// Bounds of memory and time for one hostile frame.
const (
	mostDecoderMiB = 64
	mostDecoderMS  = 200
)

// attackDecoders decodes frames that claim more content than they have, in this program and then on a page in Chromium.
func attackDecoders(ctx context.Context, c *check) ([]claim.Line, error) {
	pages, err := decodersOfPages(ctx, c.progress, "")
	return append(decodersOfProgram(), pages...), err
}

// decodersOfProgram decodes the frames with the decoders of this program. Frames of codecs that are not built in are
// counted.
func decodersOfProgram() []claim.Line {
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
	return []claim.Line{
		claim.Stated("hostile frames decoded", float64(decoded), ""),
		claim.Stated("hostile frames of codecs that are not built in", float64(absent), ""),
		claim.Exactly("hostile frames without an error", accepted, "", 0),
		claim.AtMost("memory for one frame", float64(memory)/(1<<20), "MiB", mostDecoderMiB),
		claim.AtMost("processor time for one frame", float64(longest)/float64(time.Millisecond), "ms", mostDecoderMS),
	}
}

const (
	pagesPath = "test/browser"
	// pagesLimit is the time limit for building the page, starting the browser and decoding.
	pagesLimit = 10 * time.Minute
)

// decodersOfPages decodes the frames on a page in Chromium, driven by the tests of the source tree. The source tree is
// searched from folder upwards, by default the working directory.
func decodersOfPages(ctx context.Context, progress lab.Progress, folder string) ([]claim.Line, error) {
	tests := &suite.Tests{Progress: progress, Folder: folder, Title: "decoders of pages", Parts: []suite.Part{
		{Package: pagesPath, Pattern: "^TestHostileFrames$", Limit: pagesLimit},
	}}
	lines, err := tests.Run(ctx)
	if errors.Is(err, suite.ErrSource) {
		return []claim.Line{claim.Skip("Chromium: hostile frames decoded", err.Error())}, nil
	}
	return lines, err
}
