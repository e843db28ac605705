package produce

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/volsfu/volsfu/pkg/capture"
	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/codec/model"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// measured returns a producer that has measured the first frame of its source, and a second frame.
func measured(t *testing.T, c Config) (*Producer, []volumetric.QualityLevel, *capture.Frame) {
	t.Helper()
	source := newFakeSource(4000)
	p, err := New(source, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	source.steps <- nil
	source.steps <- nil
	_, qualities, err := p.Measure(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	frame := new(capture.Frame)
	if err := source.Read(t.Context(), frame); err != nil {
		t.Fatal(err)
	}
	return p, qualities, frame
}

// carried is a sink on an uplink.
type carried struct {
	*fakeSink
	rate volumetric.Bitrate
}

func (c *carried) Uplink() volumetric.Bitrate { return c.rate }

// TestBitrateIsMet checks the size of frames with a bitrate: raw frames have 6 bytes per point at up to 8 bits, so that
// 4,000 points take 5.8 Mbit/s with all headers, and 2 Mbit/s are 1,360 points.
func TestBitrateIsMet(t *testing.T) {
	p, qualities, _ := measured(t, config(t, 2, "low=2Mbit,high=20Mbit,fixed=50%"))
	if low := 2 * qualities[0].Bitrate; low > 2e6*1.01 || low < 1.9e6 {
		t.Errorf("both tiles of the low quality take %v, want just under 2 Mbit/s", low)
	}
	levels := p.encoder.config.Levels
	if levels[1].Points != 4000 || levels[0].Points > 1380 || levels[0].Points < 1250 || levels[2].Points != 0 ||
		levels[2].Bits != 11 {
		t.Errorf("got levels %v", levels)
	}
	// Points 10 cm apart in a box of 2 m need only the coarsest steps, and have finer steps if all points fit.
	if levels[0].Bits != 6 || levels[1].Bits != 8 {
		t.Errorf("got %d and %d bits, want 6 and 8", levels[0].Bits, levels[1].Bits)
	}
}

// TestBitrateFollowsTheUplink lowers the capacity, which takes effect at once, and raises the capacity, which takes
// effect after a while. The lowest quality is unchanged.
func TestBitrateFollowsTheUplink(t *testing.T) {
	p, _, frame := measured(t, config(t, 2, "low=1Mbit,high=8Mbit"))
	sink := &carried{newFakeSink(), 100e6}
	full := p.encoder.encode(frame, time.Time{}, 0, sink)
	sink.rate = 5e6
	small := p.encoder.encode(frame, time.Time{}, 1, sink)
	if want := 0.75 * 5e6 / 30 / 8; float64(small.bytes) > want || float64(small.bytes) < 0.8*want ||
		2*full.bytes < 3*small.bytes {
		t.Errorf("a frame has %d bytes, then %d, want just under %.0f", full.bytes, small.bytes, want)
	}
	if low := sink.frames[[2]int{0, 0}]; low[0].cloud.Len() != low[1].cloud.Len() {
		t.Errorf("the lowest quality has %d points, then %d, want as many", low[0].cloud.Len(), low[1].cloud.Len())
	}
	// The quality was given up before it became smaller. It is encoded nevertheless, for a while.
	high := map[[2]int]bool{{0, 1}: true, {1, 1}: true}
	sink.set(nil, high)
	for number := range trialFrames + 10 {
		outcome := p.encoder.encode(frame, time.Time{}, uint32(2+number), sink)
		if outcome.err != nil || outcome.sent != 2 || outcome.gaveUp != 2 {
			t.Fatalf("got %+v, want two tiles sent and two given up", outcome)
		}
	}
	if n := len(sink.frames[[2]int{0, 1}]) - 2; n < trialFrames-2 || n > trialFrames {
		t.Errorf("%d frames were encoded of a quality that was given up, want about %d", n, trialFrames)
	}
}

// TestBitratesNeedASource checks that bitrates require a source with points and a frame rate, and mode alternatives.
func TestBitratesNeedASource(t *testing.T) {
	p, err := New(newFakeSource(1), config(t, 1, "low=2Mbit"))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if err := p.encoder.tune(new(capture.Frame), 30); !errors.Is(err, ErrConfig) {
		t.Errorf("no points: got %v, want ErrConfig", err)
	}
	c := config(t, 1, "low=2Mbit")
	c.Mode = volumetric.ModeDescriptions
	if _, err := New(newFakeSource(1), c); !errors.Is(err, ErrConfig) {
		t.Errorf("descriptions: got %v, want ErrConfig", err)
	}
}

// knows sets the encoding time of a tile at each quality.
func knows(p *Producer, took ...time.Duration) {
	for q, d := range took {
		params := p.encoder.params(q)
		for range 10000 {
			p.encoder.model.Observe(model.Observation{Codec: codec.Raw, Params: params, Points: 1000, Bytes: 9000,
				Took: d})
		}
	}
}

// TestTooLate checks that qualities that cannot be encoded in time are not started, and are counted, and that qualities
// take turns.
func TestTooLate(t *testing.T) {
	c := config(t, 1, "low=25%:9,high=25%:10")
	c.Limit = time.Minute
	p, _, frame := measured(t, c)
	knows(p, time.Second, time.Hour)
	sink := newFakeSink()
	for number, want := range []int{0, 1, 0} {
		if err := p.encode(captured{frame, time.Now()}, sink); err != nil {
			t.Fatal(err)
		}
		key := [2]int{0, want}
		if n := len(sink.frames[key]); n != number/2+1 {
			t.Errorf("frame %d: quality %d was encoded %d times, want %d", number, want, n, number/2+1)
		}
	}
	if got := p.Counts(); got.Published != 3 || got.Sent != 3 || got.Late != 3 || got.Dropped.All() != 0 {
		t.Errorf("got %+v, want one tile late of each frame", got)
	}
	// The estimate learns from frames that were faster than expected: an hour shrinks to the true time.
	knows(p, time.Second, time.Second)
	if err := p.encode(captured{frame, time.Now()}, sink); err != nil {
		t.Fatal(err)
	}
	// A capture that has waited for too long is dropped for a newer one.
	if err := p.encode(captured{frame, time.Now().Add(-2 * c.Limit)}, sink); err != nil {
		t.Fatal(err)
	}
	if got := p.Counts(); got.Published != 1 || got.Sent != 2 || got.Late != 0 || got.Dropped != (Drops{Late: 1}) ||
		got.Idle != 0 {
		t.Errorf("got %+v, want one frame, and one capture dropped", got)
	}
}

// TestTilesAreNotBegunTooLate checks that the rest of a frame is not started if the frame takes longer than expected.
func TestTilesAreNotBegunTooLate(t *testing.T) {
	c := config(t, 1, "low=25%:9,high=25%:10")
	c.Limit = time.Minute
	p, _, frame := measured(t, c)
	sink := newFakeSink()
	if outcome := p.encoder.encode(frame, time.Now(), 0, sink); outcome.sent != 2 {
		t.Fatalf("got %+v, want both sent", outcome)
	}
	p.encoder.deadline = time.Now().Add(-time.Second)
	w := p.encoder.workers[0]
	w.outcome = outcome{}
	if err := p.encoder.do(w, job{0, 1}); err != nil || w.outcome.late != 1 || w.outcome.sent != 0 {
		t.Errorf("got %+v, %v, want it late", w.outcome, err)
	}
}

// TestLearning checks that the expected time is that of the encoded frames, also for voxels, whose number is unknown
// before.
func TestLearning(t *testing.T) {
	p, _, frame := measured(t, config(t, 1, "low=v500mm:16,high=100%:11"))
	sink := newFakeSink()
	for number := range 50 {
		if outcome := p.encoder.encode(frame, time.Time{}, uint32(number), sink); outcome.err != nil {
			t.Fatal(outcome.err)
		}
	}
	for q, points := range []int{64, 4000} {
		got, want := p.encoder.predict(job{0, q}).Bytes, 32+9*points
		if math.Abs(float64(got)-float64(want)) > 0.02*float64(want) {
			t.Errorf("quality %d: expected %d bytes, want %d", q, got, want)
		}
	}
}
