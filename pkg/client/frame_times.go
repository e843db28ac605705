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

// Stages are when the stages of a frame before it was handed over were reached, by this host's clock; zero where that
// is not known.
type Stages struct {
	Acquired, TilingBegan, Tiled, EncodingBegan, Encoded time.Time
}

// FrameTimes brings what is known of each frame that this client receives or publishes, where that was asked for
// (Config.FrameTimes or SetFrameTimes): of received ones some two seconds after they came, of published ones once they
// have left. It is closed when the session ends.
func (s *Session) FrameTimes() <-chan frametimes.Record { return s.media.tracing.Records() }

// SetFrameTimes says whether times of frames are wanted.
func (s *Session) SetFrameTimes(ctx context.Context, wanted bool) error {
	if s.config.Receive {
		if _, err := s.request(ctx, &signal.Trace{FrameTimes: wanted}); err != nil {
			return err
		}
	}
	s.media.tracing.SetWanted(wanted && s.config.Receive, wanted)
	return nil
}

// Clock is how this host's time is turned into the server's at present.
func (s *Session) Clock() frametimes.Clock {
	s.media.mu.Lock()
	defer s.media.mu.Unlock()
	return s.media.clock.State(time.Now())
}

// FrameDecoded notes when decoding of a received frame began and was done, by the system's clock.
func (s *Session) FrameDecoded(f *Frame, began, done time.Time) {
	shift := s.config.ClockShift
	s.media.tracing.Note(f.Track, f.Number, func(r *frametimes.Record) {
		r.SetLocal(frametimes.DecodingBegan, began.Add(shift))
		r.SetLocal(frametimes.Decoded, done.Add(shift))
	})
}

// FrameShown notes when drawing of a received frame began and was done, by the system's clock.
func (s *Session) FrameShown(track volumetric.TrackRef, number int64, began, done time.Time) {
	shift := s.config.ClockShift
	s.media.tracing.Note(track, number, func(r *frametimes.Record) {
		r.SetLocal(frametimes.RenderBegan, began.Add(shift))
		r.SetLocal(frametimes.Shown, done.Add(shift))
	})
}

// reportTimes sends the server the times of sent frames, and the program those of all frames.
func (m *media) reportTimes() {
	s := m.session
	m.tracing.TakeStamps(s.endpoint)
	if times := m.tracing.Step(s.Clock(), s.config.ClockShift, time.Now()); times != nil {
		s.conn.Write(times)
	}
}

// Sent implements transport.Sink.
func (m *media) Sent(ssrc uint32, sequence uint16, kernel, hardware time.Time) {
	m.tracing.Stamped(ssrc, sequence, frametrace.KernelStamp{Kernel: kernel, Hardware: hardware})
}
