package client

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/volsfu/volsfu/pkg/payload"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// resuming is a publisher of one tile at three qualities, of which the server wants some.
type resuming struct {
	t     *testing.T
	media *media
	body  *Publisher
	wires []*wire
	begin time.Time
}

func newResuming(t *testing.T, mode volumetric.Mode, mimeType string) *resuming {
	t.Helper()
	// How long frames may wait for the uplink has nothing to do with it.
	m := newRig(t, Config{QueueBudget: 10 * time.Second})
	description := described("body", mimeType, 2, 3)
	description.Mode = mode
	p, wires := published(t, m, description)
	m.session.publishers.add(p)
	return &resuming{t: t, media: m, body: p, wires: wires, begin: time.Now()}
}

// want says which qualities of the first tile are wanted.
func (r *resuming) want(qualities ...volumetric.Quality) {
	r.media.session.handle(&signal.Wanted{Publications: []signal.WantedPublication{{Publication: "body", Tiles: [][]volumetric.Quality{qualities, {0}}}}})
}

func (r *resuming) write(number uint32, tile int, quality volumetric.Quality) {
	r.t.Helper()
	if _, err := r.body.WriteFrame(tile, quality, OutgoingFrame{Number: number, Capture: time.Now(), Data: make([]byte, 10)}); err != nil {
		r.t.Fatal(err)
	}
}

// left gives what leaves by a time from now, as NUMBER/QUALITY in that order.
func (r *resuming) left(wait time.Duration) string {
	r.t.Helper()
	var names []string
	for _, o := range r.media.uplink.depart(time.Now().Add(wait), nil) {
		var d payload.Descriptor
		if _, err := d.Unmarshal(o.payload); err != nil {
			r.t.Fatal(err)
		}
		names = append(names, fmt.Sprintf("%d/%d", d.Frame, d.Quality))
	}
	return strings.Join(names, " ")
}

func (r *resuming) expect(wait time.Duration, want string) {
	r.t.Helper()
	if got := r.left(wait); got != want {
		r.t.Errorf("within %v leave %q, want %q", wait, got, want)
	}
}

// TestResumedQualitiesLeaveFirst: the first frame of a quality that is wanted again leaves before the same frame at other qualities, whichever was written first.
// Tests that need time to pass look ahead, since frames are held from when they are written on: 33 ms at most, at 30 frames per second.
func TestResumedQualitiesLeaveFirst(t *testing.T) {
	const soon, never = time.Millisecond, time.Hour
	for _, quality := range []volumetric.Quality{0, 2} {
		r := newResuming(t, volumetric.ModeAlternatives, volumetric.MIMEVolumetric)
		r.want(1)
		r.write(1, 0, 1)
		r.expect(0, "1/1")
		r.want(1, quality)
		r.write(2, 1, 0)
		r.write(2, 0, 1)
		// The other tile does not wait.
		r.expect(0, "2/0")
		if !r.body.Wanted(0, quality) {
			t.Fatal("what is wanted again is not wanted")
		}
		r.expect(20*time.Millisecond, "")
		r.write(2, 0, quality)
		r.expect(soon, fmt.Sprintf("2/%d 2/1", quality))
		r.write(3, 0, 1)
		r.write(3, 0, quality)
		r.expect(soon, fmt.Sprintf("3/1 3/%d", quality))
		r.expect(never, "")
	}
}

// TestWhatIsResumedIsNotWaitedForLong covers programs that write nothing, those that were not told in time, and those that need more than a frame interval.
func TestWhatIsResumedIsNotWaitedForLong(t *testing.T) {
	const interval = time.Second / 30
	resume := func(qualities ...volumetric.Quality) *resuming {
		r := newResuming(t, volumetric.ModeAlternatives, volumetric.MIMEVolumetric)
		r.want(1)
		r.want(append(qualities, 1)...)
		return r
	}
	t.Run("not told", func(t *testing.T) {
		r := resume(2)
		r.write(1, 0, 1)
		r.expect(0, "")
		r.expect(interval/unannouncedShare+time.Millisecond, "1/1")
	})
	t.Run("told", func(t *testing.T) {
		r := resume(2)
		r.body.Wanted(0, 2)
		r.write(1, 0, 1)
		r.expect(interval*3/4, "")
		r.expect(interval+time.Millisecond, "1/1")
	})
	t.Run("two are resumed", func(t *testing.T) {
		r := resume(0, 2)
		r.body.Wanted(0, 0)
		r.body.Wanted(0, 2)
		r.write(1, 0, 1)
		r.write(1, 0, 2)
		r.expect(0, "1/2")
		r.write(1, 0, 0)
		r.expect(time.Millisecond, "1/0 1/1")
	})
	t.Run("no longer wanted", func(t *testing.T) {
		r := resume(2)
		r.body.Wanted(0, 2)
		r.write(1, 0, 1)
		r.want(1)
		r.expect(time.Millisecond, "1/1")
		r.write(2, 0, 1)
		r.expect(time.Millisecond, "2/1")
	})
	t.Run("given up", func(t *testing.T) {
		r := resume(2)
		r.media.planned = time.Now()
		r.body.tracks[r.body.index(0, 2)].gaveUp = true
		r.write(1, 0, 1)
		r.expect(0, "1/1")
	})
	t.Run("once", func(t *testing.T) {
		r := resume(2)
		r.body.Wanted(0, 2)
		r.write(1, 0, 1)
		r.body.tracks[r.body.index(0, 2)].resumption.until = time.Now()
		r.write(2, 0, 1)
		r.expect(time.Millisecond, "1/1 2/1")
	})
}

// TestDescriptionsWaitForNoOther, since none takes another's place, and neither do codecs that leave their qualities in turn.
func TestDescriptionsWaitForNoOther(t *testing.T) {
	r := newResuming(t, volumetric.ModeDescriptions, volumetric.MIMEVolumetric)
	r.want(1)
	r.want(1, 2)
	r.body.Wanted(0, 2)
	r.write(1, 0, 1)
	r.expect(0, "1/1")

	r = newResuming(t, volumetric.ModeAlternatives, volumetric.MIMEH264)
	r.want(1)
	r.want(1, 2)
	r.body.Wanted(0, 2)
	if _, err := r.body.WritePackets(0, 1, time.Now(), [][]byte{{1}}); err != nil {
		t.Fatal(err)
	}
	if n := len(r.media.uplink.depart(time.Now(), nil)); n != 1 {
		t.Errorf("%d packets of video leave, want the one written", n)
	}
}

// TestResumeMakesDelayedFramesBegin of the tracks that it names alone.
func TestResumeMakesDelayedFramesBegin(t *testing.T) {
	m := newRig(t, Config{})
	p, _ := published(t, m, described("body", volumetric.MIMEVolumetric, 2, 3))
	start := m.uplink.started
	for track := range 6 {
		if f := trackFrame(p, track, 1, start.Add(time.Second), 0); track%3 != 1 {
			m.uplink.delay(f)
		} else {
			m.uplink.add(f)
		}
	}
	m.uplink.resume(p, 0, 3, start)
	tracks := func(now time.Time) (list []int) {
		for _, o := range m.uplink.depart(now, nil) {
			list = append(list, o.line.track)
		}
		slices.Sort(list)
		return list
	}
	if got, want := tracks(start.Add(time.Millisecond)), []int{0, 2}; !slices.Equal(got, want) {
		t.Errorf("tracks %v leave, expected %v", got, want)
	}
	if got, want := tracks(start.Add(time.Second)), []int{1, 3, 4, 5}; !slices.Equal(got, want) {
		t.Errorf("tracks %v leave at their time, expected %v", got, want)
	}
}
