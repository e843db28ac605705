package trunk

import (
	"slices"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/congestion"
	"github.com/volsfu/volsfu/internal/feedback"
	"github.com/volsfu/volsfu/internal/forward"
	"github.com/volsfu/volsfu/internal/forward/egress"
	"github.com/volsfu/volsfu/internal/forward/track"
	"github.com/volsfu/volsfu/internal/transport"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// fittedTrunk is the origin's end of a trunk in virtual time, with the estimator of its lane. It sends a publication of
// one tile in two qualities over a path of 20 ms that is wide enough for any probe.
type fittedTrunk struct {
	estimator congestion.Estimator
	origin    *origin
	elapsed   time.Duration
	sequence  int64
	// credit is the number of bytes that are due, of each track. sent is the time of the last media packet.
	credit [2]float64
	sent   time.Duration
	// probe is the cluster that is being sent since began, with the number of bytes that have left.
	probe    congestion.ProbeCluster
	began    time.Duration
	probed   float64
	arriving []feedback.PacketResult
}

const (
	// fittedRate is the rate of each track.
	fittedRate   = volumetric.Bitrate(6e6)
	fittedPacket = 1200
	// fittedStep is the step of the time, fittedReports the interval of reports, fittedDelay the delay of each
	// direction.
	fittedStep    = time.Millisecond
	fittedReports = 25 * time.Millisecond
	fittedDelay   = 10 * time.Millisecond
	// fittedCache is the age up to which a packet is sent again as padding (forward.Config.CacheAge).
	fittedCache = time.Second
)

func newFittedTrunk() *fittedTrunk {
	f := &fittedTrunk{
		estimator: congestion.New(congestion.GCC, congestion.DefaultConfig(), start), origin: newOrigin(2),
	}
	rate := 2 * float64(fittedRate)
	f.estimator.SetLimits(start, DefaultLimits)
	f.estimator.Want(start, volumetric.Bitrate(rate/wantShare))
	f.origin.publish(cloud, &offered{2, make([]bool, 2)})
	f.origin.take(&take{publication: cloud, Tiles: [][]int{{0, 1}}})
	return f
}

func (f *fittedTrunk) now() time.Time { return start.Add(f.elapsed) }

// masked returns the masked tracks.
func (f *fittedTrunk) masked() (tracks []int) {
	for track := range f.origin.takes[cloud].masked {
		tracks = append(tracks, track)
	}
	slices.Sort(tracks)
	return tracks
}

// run lets time pass. With an outage no packet arrives.
func (f *fittedTrunk) run(d time.Duration, outage bool) {
	for end := f.elapsed + d; f.elapsed < end; f.elapsed += fittedStep {
		f.media(outage)
		f.padding(outage)
		if f.elapsed%fittedReports == 0 {
			f.report()
		}
		if next := f.estimator.Next(); !next.IsZero() && !f.now().Before(next) {
			f.estimator.Step(f.now())
		}
		if f.elapsed%fitInterval == 0 {
			f.fit()
		}
	}
}

// media sends the tracks that are not masked.
func (f *fittedTrunk) media(outage bool) {
	for track := range f.credit {
		if f.origin.takes[cloud].masked[track] {
			continue
		}
		f.credit[track] += float64(fittedRate) / 8 * fittedStep.Seconds()
		for ; f.credit[track] >= fittedPacket; f.credit[track] -= fittedPacket {
			f.send(0, outage)
			f.sent = f.elapsed
		}
	}
}

// padding sends the packets of a probe, as long as there are recent packets to repeat.
func (f *fittedTrunk) padding(outage bool) {
	if f.probe.ID == 0 {
		c, due := f.estimator.Probe(f.now())
		if !due {
			return
		}
		f.probe, f.began, f.probed = c, f.elapsed, 0
	}
	sending := f.elapsed - f.began + fittedStep
	if f.elapsed-f.sent <= fittedCache {
		for f.probed < float64(f.probe.Rate)/8*sending.Seconds() {
			f.send(f.probe.ID, outage)
			f.probed += fittedPacket
		}
	}
	if f.probed >= float64(f.probe.MinBytes) || sending > 2*f.probe.Duration {
		f.probe = congestion.ProbeCluster{}
	}
}

// send sends a packet.
func (f *fittedTrunk) send(probe int, outage bool) {
	f.sequence++
	f.estimator.Sent(f.now(), fittedPacket)
	if !outage {
		f.arriving = append(f.arriving, feedback.PacketResult{
			Sequence: f.sequence, Size: fittedPacket, Sent: f.now(), Arrived: f.elapsed + fittedDelay, Probe: probe,
			Received: true,
		})
	}
}

// report reports the packets that have arrived. The receiver reports nothing if there are none.
func (f *fittedTrunk) report() {
	arrived := 0
	for arrived < len(f.arriving) && f.arriving[arrived].Arrived+fittedDelay <= f.elapsed {
		arrived++
	}
	if arrived > 0 {
		f.estimator.Report(f.now(), f.arriving[:arrived])
		f.arriving = slices.Clone(f.arriving[arrived:])
	}
}

// fit decides about masks.
func (f *fittedTrunk) fit() {
	var candidates []candidate
	for track := range f.credit {
		candidates = append(candidates, candidate{cloud, track, false, track, fittedRate,
			f.origin.takes[cloud].masked[track]})
	}
	fit(candidates, f.estimator.Estimate())
	for _, c := range candidates {
		f.origin.fits(c.publication, c.track, !c.masked)
	}
}

// meterStub is a meter with these results.
type meterStub struct {
	rate   volumetric.Bitrate
	steady time.Duration
}

func (m meterStub) Rate() (volumetric.Bitrate, bool) { return m.rate, m.rate != 0 }
func (m meterStub) Steady() time.Duration            { return m.steady }

// TestRateOfABurst: two frames that a busy host has read together, a nanosecond apart, have a rate of terabits per
// second, which masks all tracks.
func TestRateOfABurst(t *testing.T) {
	const announced, burst = 1_200_000, 8_147_200_000_000
	for _, c := range []struct {
		meter meterStub
		want  volumetric.Bitrate
	}{
		{meterStub{}, announced},
		{meterStub{burst, 0}, announced},
		{meterStub{burst, time.Second}, announced},
		{meterStub{1_000_000, track.SteadyAfter}, 1_000_000},
		{meterStub{0, time.Minute}, announced},
	} {
		if got := rateOf(c.meter, announced); got != c.want {
			t.Errorf("%+v: the rate is %d, expected %d", c.meter, got, c.want)
		}
	}
}

// TestOneTrackIsAlwaysCarried checks the choice of that track: one that is not masked comes before one of a lower rate.
// Audio, and a track without packets, are not chosen.
func TestOneTrackIsAlwaysCarried(t *testing.T) {
	for _, c := range []struct {
		masked bool
		want   int
	}{{false, 3}, {true, 2}} {
		candidates := []candidate{
			{cloud, 0, true, 0, 4e6, false}, {cloud, 1, false, 0, 0, true}, {cloud, 2, false, 0, 2e6, true},
			{cloud, 3, false, 0, 3e6, c.masked},
		}
		fit(candidates, 1e6)
		for _, got := range candidates {
			if got.rate > 0 && got.masked != (got.track != c.want) {
				t.Errorf("track 3 masked %t: track %d is masked %t", c.masked, got.track, got.masked)
			}
		}
	}
}

// TestTracksReturnAfterAnOutage interrupts the path for so long that the estimate falls to its minimum, below the rate
// of each track. The estimate and the tracks return, because one track is sent all the time: only its packets can be
// reported, and be repeated as probes.
func TestTracksReturnAfterAnOutage(t *testing.T) {
	f := newFittedTrunk()
	f.run(5*time.Second, false)
	if masked := f.masked(); len(masked) > 0 {
		t.Fatalf("tracks %v are masked before the outage", masked)
	}
	f.run(6*time.Second, true)
	if masked := f.masked(); !slices.Equal(masked, []int{1}) || f.estimator.Estimate() > fittedRate {
		t.Errorf("in the outage tracks %v are masked, expected track 1, and the estimate is %d", masked,
			f.estimator.Estimate())
	}
	f.run(10*time.Second, false)
	if masked := f.masked(); len(masked) > 0 {
		t.Errorf("tracks %v are masked 10 s after the outage, the estimate is %d", masked, f.estimator.Estimate())
	}
}

// TestWantedRate checks that all masked tracks return at 0.95 of the wanted rate. From there on the estimate is not
// probed for more.
func TestWantedRate(t *testing.T) {
	candidates := []candidate{
		{cloud, 0, false, 0, 150e6, false}, {cloud, 1, false, 1, 150e6, true}, {cloud, 2, false, 2, 300e6, true},
	}
	wanted := 600e6 / wantShare
	fit(candidates, volumetric.Bitrate(0.95*wanted))
	for _, c := range candidates {
		if c.masked {
			t.Errorf("track %d is masked", c.track)
		}
	}
}

// TestLanesWithVideo counts the lanes that can be probed: those with a stream that carries video.
func TestLanesWithVideo(t *testing.T) {
	engine := forward.NewEngine(forward.DefaultConfig(), func() egress.Batch { return new(transport.Batch) })
	t.Cleanup(engine.Close)
	tracks := newTracks(engine, 1, 1, 9, volumetric.MIMEVolumetric)
	var l lanes
	var streams []*line
	for i, kind := range []volumetric.Kind{volumetric.KindVideo, volumetric.KindAudio, volumetric.KindVideo} {
		s := &line{stream: stream{Lane: i}, audio: kind == volumetric.KindAudio}
		receiver := engine.NewRelay(&viewerPeer{}, DefaultLimits)
		t.Cleanup(receiver.Close)
		l.all[i] = &lane{receiver: receiver, video: map[*line]struct{}{}, slots: map[*line]*egress.Slot{
			s: receiver.AddSlot(viewerOutlet{index: i}, kind)}}
		streams = append(streams, s)
	}
	for _, c := range []struct {
		change func(s *line)
		want   int
	}{
		{func(*line) {}, 0},
		{func(s *line) { l.of(s).carry(s, tracks[0], 0, 0, start) }, 2},
		{func(s *line) { l.of(s).carry(s, tracks[0], 0, 0.1, start) }, 2},
		{func(s *line) { l.of(s).rest(s, start) }, 0},
	} {
		for _, s := range streams {
			c.change(s)
		}
		if got := l.withVideo(); got != c.want {
			t.Errorf("%d lanes with video, expected %d", got, c.want)
		}
	}
}
