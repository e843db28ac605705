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

// vr2gatherSink prepends VR2Gather's header to frames of the codec cwi0, as publications with the VR2Gather mark
// require.
type vr2gatherSink struct {
	produce.Sink
	clock clock
}

// clock converts local time to the server's time. *client.Session implements it.
type clock interface {
	ServerTime(t time.Time) time.Time
}

// wholeFrames has the memory of frames with headers. wholeFrames stores pointers, so that Put and Get do not allocate.
var wholeFrames = sync.Pool{New: func() any { return new([]byte) }}

// WriteFrame implements produce.Sink. Capture times in the header are by the server's clock, as in all other
// publications.
func (s vr2gatherSink) WriteFrame(tile int, quality volumetric.Quality, f client.OutgoingFrame) (bool, error) {
	whole := wholeFrames.Get().(*[]byte)
	defer wholeFrames.Put(whole)
	*whole = appendVR2Gather((*whole)[:0], f.Codec, f.Data, s.clock.ServerTime(f.Capture))
	f.Data = *whole
	return s.Sink.WriteFrame(tile, quality, f)
}

// appendVR2Gather appends a frame of the codec cwi0 to dst in the format of VR2Gather's clients. These clients read the
// capture time from the codec's data and not from the header.
func appendVR2Gather(dst []byte, fourCC volumetric.FourCC, data []byte, capture time.Time) []byte {
	begin := len(dst)
	dst = append(dst, make([]byte, vr2gather.FrameHeaderSize)...)
	dst = codec.StampCWI0(dst, data, capture)
	header := vr2gather.NewFrameHeader(fourCC, len(dst)-begin-vr2gather.FrameHeaderSize, capture)
	header.Append(dst[begin:begin])
	return dst
}
