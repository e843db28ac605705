package client

import (
	"context"
	"time"

	"github.com/volsfu/volsfu/pkg/client/internal/frametrace"
	"github.com/volsfu/volsfu/pkg/frametimes"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// timesInterval is the time between two messages to the server with the times of frames.
const timesInterval = 500 * time.Millisecond

// Stages are the times at which a frame reached the stages before WriteFrame, by this host's clock. Unknown times are
// zero.
type Stages struct {
	Acquired, TilingBegan, Tiled, EncodingBegan, Encoded time.Time
}

// FrameTimes returns the channel of the times of each frame that this client receives or publishes, if they were
// requested (Config.FrameTimes or SetFrameTimes). Records of received frames arrive some two seconds after the frames,
// records of published frames after the frames have left. The channel is closed when the session ends.
func (s *Session) FrameTimes() <-chan frametimes.Record { return s.media().tracing.Records() }

// SetFrameTimes turns the measuring of frame times on or off.
func (s *Session) SetFrameTimes(ctx context.Context, wanted bool) error {
	if s.config.Receive {
		if _, err := s.request(ctx, &signal.Trace{FrameTimes: wanted}); err != nil {
			return err
		}
	}
	s.media().tracing.SetWanted(wanted && s.config.Receive, wanted)
	return nil
}

// Clock returns the present conversion of this host's time to the server's.
func (s *Session) Clock() frametimes.Clock {
	s.media().mu.Lock()
	defer s.media().mu.Unlock()
	return s.media().clock.State(time.Now())
}

// FrameDecoded records the beginning and the end of the decoding of a received frame, by the system's clock.
func (s *Session) FrameDecoded(f *Frame, began, done time.Time) {
	shift := s.config.ClockShift
	s.media().tracing.Note(f.Track, f.Number, func(r *frametimes.Record) {
		r.SetLocal(frametimes.DecodingBegan, began.Add(shift))
		r.SetLocal(frametimes.Decoded, done.Add(shift))
	})
}

// FrameShown records the beginning and the end of the rendering of a received frame, by the system's clock.
func (s *Session) FrameShown(track volumetric.TrackRef, number int64, began, done time.Time) {
	shift := s.config.ClockShift
	s.media().tracing.Note(track, number, func(r *frametimes.Record) {
		r.SetLocal(frametimes.RenderBegan, began.Add(shift))
		r.SetLocal(frametimes.Shown, done.Add(shift))
	})
}

// reportTimes sends the times of sent frames to the server, and the records of all frames to the program.
func (m *media) reportTimes() {
	s := m.session
	if times := m.tracing.Step(s.Clock(), s.config.ClockShift, time.Now()); times != nil {
		s.conn.Write(times)
	}
}

// Sent implements transport.Sink.
func (m *media) Sent(ssrc uint32, sequence uint16, kernel, hardware time.Time) {
	m.tracing.Stamped(ssrc, sequence, frametrace.KernelStamp{Kernel: kernel, Hardware: hardware})
}
