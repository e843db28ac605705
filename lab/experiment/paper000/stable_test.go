package paper000

import (
	"context"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/netem"
	"github.com/volsfu/volsfu/lab/carriage"
	"github.com/volsfu/volsfu/lab/experiment"
	"github.com/volsfu/volsfu/lab/experiment/direct"
	"github.com/volsfu/volsfu/lab/topology"
	"github.com/volsfu/volsfu/pkg/frametimes"
)

// TestCompetitorMissing: without iperf3, a cell with competitors is skipped before any process starts, and the reason
// names the installer.
func TestCompetitorMissing(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	s := defaultStage()
	s.Flows = 1
	_, skipped, err := s.open(t.Context(), &experiment.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	if skipped == nil || skipped.Validity != experiment.Skipped || !strings.Contains(skipped.Reason,
		"iperf3 is missing") || !strings.Contains(skipped.Reason, "make deps") {
		t.Errorf("got %+v, expected a skip because of missing iperf3", skipped)
	}
}

// TestQueueing: the queue's figures of the stable state do not include the start-up.
func TestQueueing(t *testing.T) {
	var stable topology.WireStatistics
	stable.Stats = netem.Stats{DroppedQueue: 3}
	for range 100 {
		stable.Waited.Add(25 * time.Millisecond)
	}
	end := stable
	end.DroppedQueue = 10
	for range 100 {
		end.Waited.Add(time.Millisecond)
	}
	q := queueingBetween(&stable, &end)
	if q.dropped != 7 || q.waited.Count() != 100 || q.waited.Quantile(0.95) > 1100*time.Microsecond {
		t.Errorf("%d were dropped, %d waited up to %v; expected 7, and 100 for a millisecond", q.dropped,
			q.waited.Count(), q.waited.Quantile(0.95))
	}
}

// TestEstimatesFrom: estimates count from the beginning of the measurement, independently of the publisher's beginning,
// until the end of the run.
func TestEstimatesFrom(t *testing.T) {
	began := time.Unix(1000, 0)
	list := []carriage.Estimate{{At: -1, Mbps: 12}, {At: 1.5, Mbps: 13}, {At: 2, Mbps: 20}, {At: 11.5, Mbps: 90},
		{At: 12, Mbps: 50}}
	points := estimatesFrom(began.Add(-2*time.Second), list, began, 10*time.Second)
	if len(points) != 2 || points[0] != [2]float64{0, 20} || points[1] != [2]float64{9.5, 90} {
		t.Errorf("got %v, expected 20 Mbit/s at 0 s and 90 at 9.5", points)
	}
}

// TestHeld: an estimate that is reported when it changes is in force until the next estimate.
func TestHeld(t *testing.T) {
	began := time.Unix(1000, 0)
	told := []carriage.Estimate{{At: 0.5, Mbps: 2}, {At: 1, Mbps: 40}, {At: 4.05, Mbps: 20}}
	points := held(began.Add(-2*time.Second), told, began, 3*time.Second)
	if len(points) != 30 || points[0] != [2]float64{0, 40} || points[20] != [2]float64{2, 40} || points[21][1] != 20 ||
		points[29][1] != 20 {
		t.Errorf("got %v, expected 40 Mbit/s for 2.05 s and 20 until 3 s", points)
	}
	if points := held(began.Add(time.Second), told, began, 3*time.Second); len(points) != 15 ||
		points[0] != [2]float64{1.5, 2} {
		t.Errorf("got %v, expected no value before the first report", points)
	}
	if points := held(began, nil, began, time.Second); len(points) > 0 {
		t.Errorf("got %v without estimates", points)
	}
}

// TestFramesCountFromTheNetworksBeginning: frames of vollab direct count from the beginning of the network's time, as
// competitors and queue do, although the frames arrived later.
func TestFramesCountFromTheNetworksBeginning(t *testing.T) {
	began := time.Unix(1000, 0)
	at := func(ms int) direct.Instant {
		return direct.Instant(began.Add(time.Duration(ms) * time.Millisecond).UnixMicro())
	}
	frames := []direct.Frame{{Capture: at(700), Bound: "time"}, {Capture: at(5200), Bound: "rate"}}
	if list := flightsOf(frames, began); list[0].At != 0.7 || list[1].At != 5.2 {
		t.Errorf("got %+v, expected frames after 0.7 and 5.2 s", list)
	}
	if got := boundByTime(frames, began, 5); got != 0 {
		t.Errorf("%g are bound by time from 5 s on, expected none", got)
	}
}

// TestCompared: pictures are compared until the end of the run, independently of the last arrival.
func TestCompared(t *testing.T) {
	ladder := &performance{flights: &flights{prepared: &prepared{}, since: 1.5}, stable: 5, length: 10}
	if from, until := ladder.compared(30); from != 6500*time.Millisecond || until != 11500*time.Millisecond {
		t.Errorf("prepared frames: from %v to %v, expected 6.5 to 11.5 s", from, until)
	}
	frames := []direct.Frame{{Capture: 1, SourceFrame: 3, Outcome: direct.Intact},
		{Capture: 2, SourceFrame: 297, Outcome: "lost"}, {SourceFrame: 900}}
	log := &performance{flights: &flights{frames: frames}, stable: 5, length: 10}
	from, until := log.compared(30)
	if last, next := 297*time.Second/30, 298*time.Second/30; from != 5*time.Second || until <= last || until >= next {
		t.Errorf("log: from %v to %v, expected 5 s to the last frame that was sent, though it was lost", from,
			until)
	}
	log.since = -0.5
	if from, _ := log.compared(30); from != 4500*time.Millisecond {
		t.Errorf("from %v for frames that began half a second late, expected 4.5 s", from)
	}
	log.length, log.since = 8, 0
	if _, until := log.compared(30); until != 8*time.Second {
		t.Errorf("to %v, expected no longer than the run", until)
	}
}

// TestStableOfRecords: frames captured before the stable state or after the run do not count.
func TestStableOfRecords(t *testing.T) {
	began := time.Unix(1000, 0)
	var sent, received []frametimes.Record
	for i, ms := range []int{4900, 5000, 9900, 10_000} {
		sent = append(sent, record(int64(i), 0, began, map[frametimes.Stamp]int{frametimes.Captured: ms,
			frametimes.EncodingBegan: ms + 1, frametimes.Encoded: ms + 3}))
		received = append(received, record(int64(i), 0, began, map[frametimes.Stamp]int{frametimes.Captured: ms,
			frametimes.DecodingBegan: ms + 30, frametimes.Decoded: ms + 40}))
	}
	p := &performance{flights: &flights{sent: sent, received: received}, stable: 5, length: 10}
	s := p.stagesOfRecords(&network{Metered: &direct.Metered{Began: began}})
	if len(s.decoding) != 2 || math.Abs(s.decoding[0]-10) > 1e-9 {
		t.Errorf("decoding took %v, expected two frames of 10 ms", s.decoding)
	}
}

// TestEndingEarly: a run ends early if its viewer has ended.
func TestEndingEarly(t *testing.T) {
	ended := make(chan struct{})
	close(ended)
	m := &direct.Metered{Began: time.Now()}
	if err := m.Until(t.Context(), time.Hour, ended); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := m.Until(ctx, time.Hour, nil); err == nil {
		t.Error("no error after the end of the context")
	}
}
