package client

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/volsfu/volsfu/internal/transport"
	"github.com/volsfu/volsfu/pkg/frametimes"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

const (
	// timesInterval is how often times of frames are sent to the server.
	timesInterval = 500 * time.Millisecond
	// timesPatience is how long what is known of a frame is gathered: reports of sender and server take up to half a second and the way, decoding and playout as long.
	timesPatience = 2 * time.Second
	// keptTimes bounds the frames whose times are gathered: those of two seconds at 4,096 tile frames per second, in 5 MB.
	keptTimes = 8192
	// timesBacklog is how many records may wait for the program. One that does not read loses what comes then.
	timesBacklog = 4096
	// keptStamps bounds the kernel's stamps of packets sent that wait for their frames.
	keptStamps = 512
	// stampInterval is the least time between two packets whose stamps the kernel is asked for when sending.
	stampInterval = 5 * time.Millisecond
)

// tracing gathers the times of frames. Its mutex is taken for frames, not for packets.
type tracing struct {
	records chan frametimes.Record

	// receiving says that the times of received frames are gathered, reporting that the server wants those of sent ones, and keeping that the program does.
	receiving, reporting, keeping atomic.Bool

	mu       sync.Mutex
	identity string
	// stamping says that the socket takes stamps.
	stamping bool
	joiner   *frametimes.Joiner
	sent     []*sentTimes
	stamps   []sentStamp
	dropped  int
}

// sentStamp is what the kernel tells of a packet that was sent.
type sentStamp struct {
	ssrc             uint32
	sequence         uint16
	kernel, hardware time.Time
}

func newTracing(config Config) *tracing {
	t := &tracing{records: make(chan frametimes.Record, timesBacklog), joiner: frametimes.NewJoiner(timesPatience, keptTimes)}
	t.receiving.Store(config.FrameTimes && config.Receive)
	t.keeping.Store(config.FrameTimes)
	return t
}

// FrameTimes brings what is known of each frame that this client receives or publishes, where that was asked for (Config.FrameTimes or SetFrameTimes): of received ones some
// two seconds after they came, of published ones once they have left. It is closed when the session ends.
func (s *Session) FrameTimes() <-chan frametimes.Record { return s.media.tracing.records }

// SetFrameTimes says whether times of frames are wanted.
func (s *Session) SetFrameTimes(ctx context.Context, wanted bool) error {
	if s.config.Receive {
		if _, err := s.request(ctx, &signal.Trace{FrameTimes: wanted}); err != nil {
			return err
		}
	}
	s.media.tracing.receiving.Store(wanted && s.config.Receive)
	s.media.tracing.keeping.Store(wanted)
	return nil
}

// Clock is how this host's time is turned into the server's at present.
func (s *Session) Clock() frametimes.Clock {
	s.media.mu.Lock()
	defer s.media.mu.Unlock()
	return s.media.clock.state(time.Now())
}

// FrameDecoded notes when decoding of a received frame began and was done, by the system's clock.
func (s *Session) FrameDecoded(f *Frame, began, done time.Time) {
	shift := s.config.ClockShift
	s.media.tracing.note(f.Track, f.Number, func(r *frametimes.Record) {
		r.SetLocal(frametimes.DecodingBegan, began.Add(shift))
		r.SetLocal(frametimes.Decoded, done.Add(shift))
	})
}

// FrameShown notes when drawing of a received frame began and was done, by the system's clock.
func (s *Session) FrameShown(track volumetric.TrackRef, number int64, began, done time.Time) {
	shift := s.config.ClockShift
	s.media.tracing.note(track, number, func(r *frametimes.Record) {
		r.SetLocal(frametimes.RenderBegan, began.Add(shift))
		r.SetLocal(frametimes.Shown, done.Add(shift))
	})
}

// note adds stamps of a received frame, if frames are traced.
func (t *tracing) note(track volumetric.TrackRef, number int64, add func(*frametimes.Record)) {
	if !t.receiving.Load() {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.joiner.Note(frametimes.Key{Track: track, Frame: uint32(number)}, add)
}

// traces tells whether frames that are sent are traced.
func (t *tracing) traces() bool { return t.reporting.Load() || t.keeping.Load() }

// asked takes the server's wish for the times of frames that are sent.
func (t *tracing) asked(wanted bool) { t.reporting.Store(wanted) }

// joined takes the name that the server knows this participant by.
func (t *tracing) joined(identity string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.identity = identity
}

// left takes a frame that has left whole.
func (t *tracing) left(times *sentTimes) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.sent) == keptTimes {
		t.dropped++
		return
	}
	t.sent = append(t.sent, times)
}

// stamped takes the kernel's stamps of a packet that was sent.
func (t *tracing) stamped(s sentStamp) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range t.stamps {
		if known := &t.stamps[i]; known.ssrc == s.ssrc && known.sequence == s.sequence {
			// Kernel and network card are told of one by one.
			if known.kernel.IsZero() {
				known.kernel = s.kernel
			}
			if known.hardware.IsZero() {
				known.hardware = s.hardware
			}
			return
		}
	}
	if len(t.stamps) == keptStamps {
		t.stamps = slices.Delete(t.stamps, 0, keptStamps/2)
	}
	t.stamps = append(t.stamps, s)
}

// received takes what the receiver knows of a frame that is complete.
func (t *tracing) received(part *frametimes.Record, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.joiner.Claim(frametimes.Key{Track: part.Track, Frame: uint32(part.Frame)}, part, now)
}

func hostClockOf(c frametimes.Clock) signal.HostClock {
	return signal.HostClock{
		Source: signal.ClockSource(c.Source), Offset: int64(c.Offset), Bound: int64(c.Bound), Uncertainty: int64(c.Uncertainty), Disagreement: int64(c.Disagreement),
	}
}

// step hands the program what is ready, and returns the message for the server, nil for none.
func (t *tracing) step(clock frametimes.Clock, shift time.Duration, now time.Time) *signal.FrameTimes {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range t.joiner.Take(now, nil) {
		r.Receiver = t.identity
		t.hand(r)
	}
	if clock.Source == "" {
		// What was sent waits until its times can be told.
		return nil
	}
	sent := t.sent
	t.sent = nil
	var message *signal.FrameTimes
	if t.reporting.Load() && len(sent) > 0 {
		message = &signal.FrameTimes{Host: signal.FrameHostSender, Clock: hostClockOf(clock)}
	}
	rows := newRows(message, len(sent))
	for i, times := range sent {
		r := times.record(t.identity, clock, shift)
		t.stamp(times, &r, shift)
		if message != nil {
			if i < signal.MaxFrameTimes {
				rows.add(&r, times.number)
			} else {
				t.dropped++
			}
		}
		if t.keeping.Load() {
			t.hand(r)
		}
	}
	if message != nil {
		message.Dropped, t.dropped = t.dropped, 0
	}
	return message
}

// hand gives the program a record. The caller holds the mutex, here and below.
func (t *tracing) hand(r frametimes.Record) {
	select {
	case t.records <- r:
	default:
	}
}

// stamp adds what the kernel said of a frame's first packet.
func (t *tracing) stamp(times *sentTimes, r *frametimes.Record, shift time.Duration) {
	for i, s := range t.stamps {
		if s.ssrc != times.ssrc || s.sequence != times.sequence {
			continue
		}
		t.stamps = slices.Delete(t.stamps, i, i+1)
		if !s.kernel.IsZero() {
			r.SetLocal(frametimes.FirstSentKernel, s.kernel.Add(shift))
		}
		if !s.hardware.IsZero() {
			r.SetLocal(frametimes.FirstSentHardware, s.hardware.Add(shift))
		}
		return
	}
}

// end hands over what waits, and closes the channel.
func (t *tracing) end() {
	t.receiving.Store(false)
	t.reporting.Store(false)
	t.keeping.Store(false)
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range t.joiner.Drain(nil) {
		r.Receiver = t.identity
		t.hand(r)
	}
	close(t.records)
}

// takeStamps makes the endpoint's sockets take stamps while frames are traced.
func (t *tracing) takeStamps(endpoint *transport.Endpoint) {
	wanted := t.traces() || t.receiving.Load()
	t.mu.Lock()
	changes := t.stamping != wanted
	t.stamping = wanted
	t.mu.Unlock()
	if changes {
		endpoint.TakeStamps(wanted)
	}
}

// reportTimes sends the server the times of sent frames, and the program those of all frames.
func (m *media) reportTimes() {
	s := m.session
	m.tracing.takeStamps(s.endpoint)
	if times := m.tracing.step(s.Clock(), s.config.ClockShift, time.Now()); times != nil {
		s.link.write(times)
	}
}
