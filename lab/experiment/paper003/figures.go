package paper003

import (
	"fmt"
	"slices"
	"time"

	"github.com/volsfu/volsfu/lab/experiment"
)

// quantities describe the time of the variation, as the paper's figures do.
var quantities = append([]experiment.Quantity{
	{Name: "fps", Unit: "fps", Label: "frames received per second"},
	{Name: "fps_worst", Unit: "fps", Label: "frames received in the worst second"},
	{Name: "delay", Unit: "ms", Label: "from capture to reception"},
	{Name: "delay_p95", Unit: "ms", Label: "from capture to reception, 95th percentile"},
	{Name: "timely", Unit: "%", Label: "frames received within 150 ms of their capture"},
	{Name: "throughput", Unit: "Mbit/s", Label: "received"},
	{Name: "cost", Unit: "", Label: "packets on all paths, of the packets sent"},
	{Name: "sent", Unit: "", Label: "bytes on all paths, of the received"},
	{Name: "request_max", Unit: "ms", Label: "longest interval between requests"},
	{Name: "packet_delay", Unit: "ms", Label: "from the first departure of a packet to its first arrival"},
	{Name: "packet_delay_p95", Unit: "ms", Label: "the same, 95th percentile"},
	{Name: "packet_delay_p999", Unit: "ms", Label: "the same, 99.9th percentile"},
	{Name: "starts", Unit: "", Label: "starts of copies by the paper's trigger"},
	{Name: "started", Unit: "s", Label: "from the onset to the first start"},
}, perPath()...)

// perPath returns the quantities of each path.
func perPath() (list []experiment.Quantity) {
	for i := range tableOne {
		n := i + 1
		list = append(list, experiment.Quantity{Name: fmt.Sprintf("path%d", n),
			Label: fmt.Sprintf("bytes on path %d, of the received", n)})
	}
	for i := range tableOne {
		n := i + 1
		list = append(list, experiment.Quantity{Name: fmt.Sprintf("reward%d", n), Unit: "packets",
			Label: fmt.Sprintf("reward of path %d in a window of 100 packets", n)})
	}
	for i := range tableOne {
		n := i + 1
		list = append(list, experiment.Quantity{Name: fmt.Sprintf("removed%d", n), Unit: "windows",
			Label: fmt.Sprintf("windows of 100 packets until path %d leaves", n)})
	}
	return list
}

// timely is the age up to which a frame is in time: the paper's threshold for a stall.
const timely = 150 * time.Millisecond

// variation returns when the delays vary: from 10 to 50 of 60 seconds, as in section IV-A.
func variation(length time.Duration) (begin, end time.Duration) { return length / 6, length * 5 / 6 }

// grace is the time after the last request in which frames may arrive.
const grace = 2 * time.Second

// reading has the counters at one time of a run.
type reading struct {
	at time.Duration
	// sent are the bytes that the server's interfaces have sent, by path, and packets the counts of the method.
	sent    []uint64
	packets sentPackets
}

// total returns the bytes on all paths.
func (r *reading) total() (bytes uint64) {
	for _, path := range r.sent {
		bytes += path
	}
	return bytes
}

// measure computes the figures.
func (p *performance) measure(o *experiment.Outcome) {
	var frames []delivery
	for _, f := range p.viewer.frames {
		if f.received >= p.begin && f.received < p.end {
			frames = append(frames, f)
		}
	}
	seconds := int((p.end - p.begin) / time.Second)
	counts, rates := make([]float64, seconds), make([]float64, seconds)
	var delays []float64
	inTime, bytes := 0, 0
	for _, f := range frames {
		delay := f.received - f.captured
		delays = append(delays, delay.Seconds()*1e3)
		if delay <= timely {
			inTime++
		}
		bytes += f.bytes
		if second := int((f.received - p.begin) / time.Second); second < seconds {
			counts[second]++
			rates[second] += float64(f.bytes) * 8 / 1e6
		}
	}
	o.Sample("fps", counts)
	o.Set("fps_worst", slices.Min(counts))
	if len(delays) > 0 {
		o.Sample("delay", delays)
		o.Set("delay_p95", experiment.Quantile(delays, 0.95))
	}
	captured := (p.end - p.begin).Seconds() * p.FPS
	o.Set("timely", 100*min(float64(inTime)/captured, 1))
	o.Sample("throughput", rates)
	longest := time.Duration(0)
	for i, at := range p.viewer.requests[1:] {
		if at >= p.begin && at < p.end {
			longest = max(longest, at-p.viewer.requests[i])
		}
	}
	o.Set("request_max", longest.Seconds()*1e3)
	o.Series("frames", "s", "fps", indexed(counts, p.begin))
	o.Series("received", "s", "Mbit/s", indexed(rates, p.begin))
	p.measurePaths(o, bytes)
	p.measurePackets(o)
}

// indexed returns values per second as points, from a time on.
func indexed(values []float64, from time.Duration) (points [][2]float64) {
	for i, v := range values {
		points = append(points, [2]float64{from.Seconds() + float64(i), v})
	}
	return points
}

// measurePaths computes the figures of the paths, whose traffic delivered a number of bytes of frames. A figure is
// absent if the counters were not read when the variation began and ended.
func (p *performance) measurePaths(o *experiment.Outcome, bytes int) {
	for i := range tableOne {
		var points [][2]float64
		for n := range p.readings[min(1, len(p.readings)):] {
			before, now := &p.readings[n], &p.readings[n+1]
			points = append(points, [2]float64{before.at.Seconds(),
				float64(now.sent[i]-before.sent[i]) * 8 / 1e6 / (now.at - before.at).Seconds()})
		}
		o.Series(fmt.Sprintf("path %d", i+1), "s", "Mbit/s", points)
	}
	if len(p.readings) < 2 || p.readings[len(p.readings)-1].at < p.end {
		return
	}
	first, last := &p.readings[0], &p.readings[len(p.readings)-1]
	if bytes > 0 {
		o.Set("sent", float64(last.total()-first.total())/float64(bytes))
		for i := range tableOne {
			o.Set(fmt.Sprintf("path%d", i+1), float64(last.sent[i]-first.sent[i])/float64(bytes))
		}
	}
	if selected := last.packets.selected - first.packets.selected; selected > 0 {
		o.Set("cost", float64(last.packets.copies-first.packets.copies)/float64(selected))
	}
}

// measurePackets computes the delays of the packets that left in the time of the variation.
func (p *performance) measurePackets(o *experiment.Outcome) {
	var delays []float64
	for _, passage := range p.passages {
		if passage.left >= p.begin && passage.left < p.end {
			delays = append(delays, (passage.arrived-passage.left).Seconds()*1e3)
		}
	}
	if len(delays) > 0 {
		o.Sample("packet_delay", delays)
		o.Set("packet_delay_p95", experiment.Quantile(delays, 0.95))
		o.Set("packet_delay_p999", experiment.Quantile(delays, 0.999))
	}
}
