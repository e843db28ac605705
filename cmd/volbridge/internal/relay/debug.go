package relay

import (
	"context"
	"encoding/binary"
	"time"

	"github.com/volsfu/volsfu/cmd/volbridge/internal/bridge"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/pkg/vr2gather"
)

const (
	// debugFrame is the size of a debug frame without its header, debugRate the number of frames per second.
	debugFrame = 5000
	debugRate  = 30
)

// debugCodec is a codec that no receiver decodes.
var debugCodec = volumetric.FourCC{'n', 'o', 'n', 'e'}

// publishDebugFrames produces debug frames in place of the connector's frames, until the context ends.
func (s *Relay) publishDebugFrames(ctx context.Context) {
	ticker := time.NewTicker(time.Second / debugRate)
	defer ticker.Stop()
	layout := s.settings.layout
	for count := uint32(0); ; count++ {
		var now time.Time
		select {
		case now = <-ticker.C:
		case <-ctx.Done():
			return
		}
		header := vr2gather.NewFrameHeader(debugCodec, debugFrame, now)
		for track := range layout.Tracks() {
			data := header.Append(make([]byte, 0, vr2gather.FrameHeaderSize+debugFrame))
			data = data[:cap(data)]
			binary.LittleEndian.PutUint32(data[vr2gather.FrameHeaderSize:], count)
			f := &bridge.Frame{
				Kind: volumetric.KindVideo, Tile: track / layout.Qualities,
				Quality: volumetric.Quality(track % layout.Qualities), Track: track,
				Header: header, Data: data, Arrival: now,
			}
			select {
			case s.frames <- f:
			default:
				s.tally.Add(bridge.DropBehind)
			}
		}
	}
}
