package publish

import (
	"sync"
	"time"

	"github.com/volsfu/volsfu/cmd/volpeer/internal/produce"
	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/pkg/vr2gather"
)

// vr2gatherSink puts VR2Gather's header before frames of the codec cwi0, as a publication that is marked so has them.
type vr2gatherSink struct {
	produce.Sink
	clock clock
}

// clock tells the server's time; *client.Session is one.
type clock interface {
	ServerTime(t time.Time) time.Time
}

// wholeFrames are the memory of frames with their headers, from one to the next. A pointer goes in and out without an
// allocation.
var wholeFrames = sync.Pool{New: func() any { return new([]byte) }}

// WriteFrame implements produce.Sink. Capture times are by the server's clock, as those of other publications:
// receivers reckon by it.
func (s vr2gatherSink) WriteFrame(tile int, quality volumetric.Quality, f client.OutgoingFrame) (bool, error) {
	whole := wholeFrames.Get().(*[]byte)
	defer wholeFrames.Put(whole)
	*whole = appendVR2Gather((*whole)[:0], f.Codec, f.Data, s.clock.ServerTime(f.Capture))
	f.Data = *whole
	return s.Sink.WriteFrame(tile, quality, f)
}

// appendVR2Gather appends a frame of the codec cwi0 to dst as VR2Gather's clients exchange it. They take the capture
// time of a cloud from the codec's data, not from the header.
func appendVR2Gather(dst []byte, fourCC volumetric.FourCC, data []byte, capture time.Time) []byte {
	begin := len(dst)
	dst = append(dst, make([]byte, vr2gather.FrameHeaderSize)...)
	dst = codec.StampCWI0(dst, data, capture)
	header := vr2gather.NewFrameHeader(fourCC, len(dst)-begin-vr2gather.FrameHeaderSize, capture)
	header.Append(dst[begin:begin])
	return dst
}
