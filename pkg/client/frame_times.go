package client

import (
	"context"
	"time"

	"github.com/volsfu/volsfu/pkg/client/internal/frametrace"
	"github.com/volsfu/volsfu/pkg/client/internal/signalling"
	"github.com/volsfu/volsfu/pkg/frametimes"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// timesInterval is the time between two messages to the server with the times of frames.
const timesInterval = 500 * time.Millisecond

// frameTimes are the times of the frames that a session sends and receives.
type frameTimes struct {
	config   Config
	requests *signalling.Requests
	path     *path
	tracing  *frametrace.Collector
}

// FrameTimes returns the channel of the times of each frame that this client receives or publishes, if they were
// requested (Config.FrameTimes or SetFrameTimes). Records of received frames arrive some two seconds after the frames,
// records of published frames after the frames have left. The channel is closed when the session ends.
func (f *frameTimes) FrameTimes() <-chan frametimes.Record { return f.tracing.Records() }

// SetFrameTimes turns the measuring of frame times on or off.
func (f *frameTimes) SetFrameTimes(ctx context.Context, wanted bool) error {
	if f.config.Receive {
		if _, err := f.requests.Do(ctx, &signal.Trace{FrameTimes: wanted}); err != nil {
			return err
		}
	}
	f.tracing.SetWanted(wanted && f.config.Receive, wanted)
	return nil
}

// Clock returns the present conversion of this host's time to the server's.
func (f *frameTimes) Clock() frametimes.Clock {
	return f.path.media().clockState(time.Now())
}

// FrameDecoded records the beginning and the end of the decoding of a received frame, by the system's clock.
func (f *frameTimes) FrameDecoded(frame *Frame, began, done time.Time) {
	shift := f.config.ClockShift
	f.tracing.Note(frame.Track, frame.Number, func(r *frametimes.Record) {
		r.SetLocal(frametimes.DecodingBegan, began.Add(shift))
		r.SetLocal(frametimes.Decoded, done.Add(shift))
	})
}

// FrameShown records the beginning and the end of the rendering of a received frame, by the system's clock.
func (f *frameTimes) FrameShown(track volumetric.TrackRef, number int64, began, done time.Time) {
	shift := f.config.ClockShift
	f.tracing.Note(track, number, func(r *frametimes.Record) {
		r.SetLocal(frametimes.RenderBegan, began.Add(shift))
		r.SetLocal(frametimes.Shown, done.Add(shift))
	})
}

// report sends the times of sent frames to the server, and the records of all frames to the program.
func (f *frameTimes) report() {
	if times := f.tracing.Step(f.Clock(), f.config.ClockShift, time.Now()); times != nil {
		f.requests.Conn().Write(times)
	}
}
