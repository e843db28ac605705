package hardening

import (
	"fmt"
	"slices"
	"time"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/test/claim"
	"github.com/volsfu/volsfu/test/testbed"
)

// innocentLoad is the traffic of the innocents' publisher: 2 tiles at 2 qualities, 6 Mbit/s at the higher one.
var innocentLoad = testbed.Load{Name: "body", Tiles: 2, Qualities: 2, FrameBytes: 12_500, Step: 2, Rate: 30}

const (
	innocentRoom = "lab"
	// settling is the time limit for frames to arrive after a window has ended. The limit is longer than the repair of
	// a frame by the server and the client.
	settling = 2 * time.Second
)

// impact is the effect on the watchers in a window.
type impact struct {
	// sent and lost count frames of single tiles.
	sent, lost int64
	// worst and mean are frames per second and tile; worst is the worst second of any watcher.
	worst, mean float64
	// latency is the time from capture to the last packet. A lost frame counts with settling, its time limit.
	latency lab.Distribution
	corrupt int
	resumed int
	offers  int64
}

// window is a time over which the innocents are watched.
type window struct {
	innocents *innocents
	began     time.Time
	first     int64
	// arrivals are the counts of each watcher at the beginning.
	arrivals         []int
	corrupt, resumed int
	offers           int64
}

// watch begins a window.
func (i *innocents) watch() *window {
	w := &window{innocents: i, first: i.publisher.Published(innocentLoad.Name)}
	for _, watcher := range i.watchers {
		w.arrivals = append(w.arrivals, len(watcher.Arrivals()))
	}
	w.corrupt, w.resumed, w.offers = i.counts()
	w.began = time.Now()
	return w
}

// counts returns the corrupt frames, the resumed sessions and the offers of the server so far.
func (i *innocents) counts() (corrupt, resumed int, offers int64) {
	resumed = i.publisher.Count("resumed")
	for _, watcher := range i.watchers {
		resumed += watcher.Count("resumed")
		for _, r := range watcher.Tiles() {
			corrupt += r.Corrupt
		}
	}
	for _, d := range i.relays[:1+len(i.watchers)] {
		offers += d.offers.Load()
	}
	return corrupt, resumed, offers
}

// end ends a window: it waits for frames in flight and computes the impact.
func (w *window) end() impact {
	ended, last := time.Now(), w.innocents.publisher.Published(innocentLoad.Name)
	time.Sleep(settling)
	var all impact
	for n, watcher := range w.innocents.watchers {
		arrivals := watcher.Arrivals()
		t := impactOf(arrivals[min(w.arrivals[n], len(arrivals)):], w.began, ended, w.first, last)
		if n == 0 {
			all = t
			continue
		}
		all.sent, all.lost, all.worst = all.sent+t.sent, all.lost+t.lost, min(all.worst, t.worst)
		all.mean += (t.mean - all.mean) / float64(n+1)
		all.latency.Join(&t.latency)
	}
	corrupt, resumed, offers := w.innocents.counts()
	all.corrupt, all.resumed, all.offers = corrupt-w.corrupt, resumed-w.resumed, offers-w.offers
	return all
}

// impactOf computes the impact from the arrivals of frames with numbers in [first, last), sent between two times.
func impactOf(arrivals []testbed.Arrival, began, ended time.Time, first, last int64) impact {
	t := impact{sent: (last - first) * int64(innocentLoad.Tiles)}
	seconds := make([]int, max(1, int(ended.Sub(began)/time.Second)))
	came := int64(0)
	for _, a := range arrivals {
		if a.Number < first || a.Number >= last {
			continue
		}
		came++
		t.latency.Add(a.Latency())
		if second := int(a.Complete.Sub(began) / time.Second); second >= 0 && second < len(seconds) {
			seconds[second]++
		}
	}
	t.lost = t.sent - came
	for range t.lost {
		t.latency.Add(settling)
	}
	tiles := float64(innocentLoad.Tiles)
	t.worst = float64(slices.Min(seconds)) / tiles
	sum := 0
	for _, n := range seconds {
		sum += n
	}
	t.mean = float64(sum) / float64(len(seconds)) / tiles
	return t
}

const (
	// leastRate is the least number of frames in the watcher's worst second, of 30: seconds begin anywhere between two
	// frames.
	leastRate = 29
	// mostLatency bounds the 99th percentile of the time from capture to the frame's last packet, in milliseconds.
	mostLatency = 100
)

// figures returns the lines for information.
func (t *impact) figures(prefix string) []claim.Line {
	return []claim.Line{
		claim.Information(prefix+"frames per second and tile, worst second", t.worst, "fps"),
		claim.Information(prefix+"frames per second and tile, mean", t.mean, "fps"),
		claim.Information(prefix+"latency p50", lab.Milliseconds(t.latency.Percentile(0.5)), "ms"),
		claim.Information(prefix+"latency p99", lab.Milliseconds(t.latency.Percentile(0.99)), "ms"),
		claim.Information(prefix+"latency, longest", lab.Milliseconds(t.latency.Max()), "ms"),
	}
}

// whole returns the lines of the claim that no frame is lost.
func (o *outcome) whole(prefix string) []claim.Line {
	before := fmt.Sprintf("innocents' frames lost before, of %d", o.alone.sent)
	return append([]claim.Line{
		claim.Exactly(prefix+"innocents' frames lost", o.lost, "", 0),
		claim.Exactly(prefix+"innocents' frames that are not as they were sent", int64(o.corrupt), "", 0),
		claim.Information(prefix+"innocents' frames sent", float64(o.sent), ""),
		claim.Information(prefix+before, float64(o.alone.lost), ""),
	}, o.figures(prefix)...)
}

// steady returns the lines of the claim that the frame rate is kept.
func (o *outcome) steady(prefix string) []claim.Line {
	return []claim.Line{
		claim.AtLeast(prefix+"frames per second and tile, worst second", o.worst, "fps", leastRate),
		claim.Information(prefix+"frames per second and tile before, worst second", o.alone.worst, "fps"),
		claim.Information(prefix+"frames per second and tile, mean", o.mean, "fps"),
		claim.Information(prefix+"latency p50", lab.Milliseconds(o.latency.Percentile(0.5)), "ms"),
		claim.AtMost(prefix+"latency p99", lab.Milliseconds(o.latency.Percentile(0.99)), "ms", mostLatency),
		claim.Information(prefix+"latency p99 before", lab.Milliseconds(o.alone.latency.Percentile(0.99)), "ms"),
		claim.Information(prefix+"latency, longest", lab.Milliseconds(o.latency.Max()), "ms"),
		claim.Information(prefix+"innocents' frames lost", float64(o.lost), ""),
		claim.Information(prefix+"innocents' frames sent", float64(o.sent), ""),
	}
}
