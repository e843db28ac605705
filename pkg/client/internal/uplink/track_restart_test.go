package uplink

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/volsfu/volsfu/pkg/payload"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// restarting is a publication of two tiles at three qualities, some of which the server wants.
type restarting struct {
	t     *testing.T
	u     *Uplink
	body  *Publication
	wires []*wire
	begin time.Time
}

func newRestarting(t *testing.T, mode volumetric.Mode, mimeType string) *restarting {
	t.Helper()
	// The budget for waiting frames has no effect on restarts.
	u := newRig(t)
	description := described("body", mimeType, 2, 3)
	description.Mode = mode
	p := NewPublication(description, defaultSpread, 10*time.Second)
	return &restarting{t: t, u: u, body: p, wires: negotiate(u, p), begin: time.Now()}
}

// want sets the wanted qualities of the first tile.
func (r *restarting) want(qualities ...volumetric.Quality) {
	r.u.Want(r.body, [][]volumetric.Quality{qualities, {0}}, time.Now())
}

func (r *restarting) write(number uint32, tile int, quality volumetric.Quality) {
	r.t.Helper()
	write(r.t, r.u, r.body, tile, quality, number, 10)
}

// wanted asks whether a quality of the first tile is wanted, as a program does.
func (r *restarting) wanted(quality volumetric.Quality) bool {
	return r.u.Wanted(r.body, r.body.Track(0, quality), time.Now())
}

// left returns the frames that leave within a time from now, as NUMBER/QUALITY in that order.
func (r *restarting) left(wait time.Duration) string {
	r.t.Helper()
	var names []string
	for _, o := range r.u.Depart(time.Now().Add(wait), nil) {
		var d payload.Descriptor
		if _, err := d.Unmarshal(o.Payload); err != nil {
			r.t.Fatal(err)
		}
		names = append(names, fmt.Sprintf("%d/%d", d.Frame, d.Quality))
	}
	return strings.Join(names, " ")
}

func (r *restarting) expect(wait time.Duration, want string) {
	r.t.Helper()
	if got := r.left(wait); got != want {
		r.t.Errorf("within %v leave %q, want %q", wait, got, want)
	}
}

// TestRestartedQualitiesLeaveFirst: the first frame of a quality that is wanted again leaves before the same frame at
// other qualities, in whichever order they are written. Tests that need time to pass look ahead, since frames are held
// from the time of writing: 33 ms at most, at 30 frames per second.
func TestRestartedQualitiesLeaveFirst(t *testing.T) {
	const soon, never = time.Millisecond, time.Hour
	for _, quality := range []volumetric.Quality{0, 2} {
		r := newRestarting(t, volumetric.ModeAlternatives, volumetric.MIMEVolumetric)
		r.want(1)
		r.write(1, 0, 1)
		r.expect(0, "1/1")
		r.want(1, quality)
		r.write(2, 1, 0)
		r.write(2, 0, 1)
		// The other tile does not wait.
		r.expect(0, "2/0")
		if !r.wanted(quality) {
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

// TestWhatIsRestartedIsNotWaitedForLong covers programs that write nothing, programs that were not informed in time,
// and programs that need more than a frame interval.
func TestWhatIsRestartedIsNotWaitedForLong(t *testing.T) {
	const interval = time.Second / 30
	restart := func(qualities ...volumetric.Quality) *restarting {
		r := newRestarting(t, volumetric.ModeAlternatives, volumetric.MIMEVolumetric)
		r.want(1)
		r.want(append(qualities, 1)...)
		return r
	}
	t.Run("not told", func(t *testing.T) {
		r := restart(2)
		r.write(1, 0, 1)
		r.expect(0, "")
		r.expect(interval/unannouncedShare+time.Millisecond, "1/1")
	})
	t.Run("told", func(t *testing.T) {
		r := restart(2)
		r.wanted(2)
		r.write(1, 0, 1)
		r.expect(interval*3/4, "")
		r.expect(interval+time.Millisecond, "1/1")
	})
	t.Run("two are resumed", func(t *testing.T) {
		r := restart(0, 2)
		r.wanted(0)
		r.wanted(2)
		r.write(1, 0, 1)
		r.write(1, 0, 2)
		r.expect(0, "1/2")
		r.write(1, 0, 0)
		r.expect(time.Millisecond, "1/0 1/1")
	})
	t.Run("no longer wanted", func(t *testing.T) {
		r := restart(2)
		r.wanted(2)
		r.write(1, 0, 1)
		r.want(1)
		r.expect(time.Millisecond, "1/1")
		r.write(2, 0, 1)
		r.expect(time.Millisecond, "2/1")
	})
	t.Run("given up", func(t *testing.T) {
		r := restart(2)
		r.u.planned = time.Now()
		r.body.tracks[r.body.Track(0, 2)].gaveUp = true
		r.write(1, 0, 1)
		r.expect(0, "1/1")
	})
	t.Run("once", func(t *testing.T) {
		r := restart(2)
		r.wanted(2)
		r.write(1, 0, 1)
		r.body.tracks[r.body.Track(0, 2)].restart.until = time.Now()
		r.write(2, 0, 1)
		r.expect(time.Millisecond, "1/1 2/1")
	})
}

// TestDescriptionsWaitForNoOther, since no description replaces another. Codecs whose qualities leave in turn do not
// wait, either.
func TestDescriptionsWaitForNoOther(t *testing.T) {
	r := newRestarting(t, volumetric.ModeDescriptions, volumetric.MIMEVolumetric)
	r.want(1)
	r.want(1, 2)
	r.wanted(2)
	r.write(1, 0, 1)
	r.expect(0, "1/1")

	r = newRestarting(t, volumetric.ModeAlternatives, volumetric.MIMEH264)
	r.want(1)
	r.want(1, 2)
	r.wanted(2)
	now := time.Now()
	r.u.Enqueue(Frame{Publication: r.body, Track: 1, Capture: now, Payloads: [][]byte{{1}}, InTurn: true}, now)
	if n := len(r.u.Depart(time.Now(), nil)); n != 1 {
		t.Errorf("%d packets of video leave, want the one written", n)
	}
}

// TestResumeMakesDelayedFramesBegin only for the tracks that it names.
func TestResumeMakesDelayedFramesBegin(t *testing.T) {
	u := newRig(t)
	p, _ := published(t, u, described("body", volumetric.MIMEVolumetric, 2, 3))
	start := u.queue.started
	for track := range 6 {
		if f := trackFrame(p, track, 1, start.Add(time.Second), 0); track%3 != 1 {
			u.queue.delay(f)
		} else {
			u.queue.add(f)
		}
	}
	u.queue.resume(p, 0, 3, start)
	tracks := func(now time.Time) (list []int) {
		for _, o := range u.Depart(now, nil) {
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
