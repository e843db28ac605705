package paper002

import (
	"github.com/volsfu/volsfu/lab/experiment"
	"github.com/volsfu/volsfu/lab/experiment/direct"
)

// quantities are the paper's metrics (section 3.5). The producer's processing is the time from the captured cloud to
// the encoded frame in the sender's buffer; the producer's transmission is the time from the first packet to the last.
// The consumer's processing is decompression and rendering at 1280×720; the consumer's transmission is the time from
// one complete frame to the next. The wait for the next frame is the time from a frame's last packet to the first
// packet of the next frame, by which the consumer recognises the end of the frame. End to end is the time from capture
// to rendered. Reliability is the share of the sent frames that arrived unchanged, by their hashes. Bitrates include
// all headers.
var quantities = []experiment.Quantity{
	{Name: "producer_processing", Unit: "ms", Label: "producer processing"},
	{Name: "compression", Unit: "ms", Label: "compression"},
	{Name: "producer_transmission", Unit: "ms", Label: "producer transmission"},
	{Name: "pc_size", Unit: "MB", Label: "frame size"},
	{Name: "fps", Unit: "frames/s", Label: "frames sent"},
	{Name: "consumer_processing", Unit: "ms", Label: "consumer processing"},
	{Name: "decompression", Unit: "ms", Label: "decompression"},
	{Name: "rendering", Unit: "ms", Label: "rendering"},
	{Name: "consumer_transmission", Unit: "ms", Label: "consumer transmission"},
	{Name: "next_frame", Unit: "ms", Label: "wait for the next frame"},
	{Name: "end_to_end", Unit: "ms", Label: "end to end"},
	{Name: "end_to_end_min", Unit: "ms", Label: "end to end, smallest"},
	{Name: "end_to_end_p95", Unit: "ms", Label: "end to end, 95th percentile"},
	{Name: "end_to_end_deviation", Unit: "ms", Label: "end to end, deviation"},
	{Name: "reliability", Unit: "%", Label: "reliability"},
	{Name: "bitrate", Unit: "MB/s", Label: "bitrate"},
	{Name: "bitrate30", Unit: "MB/s", Label: "bitrate₃₀"},
	{Name: "bits_per_point", Unit: "bit", Label: "size per point"},
	{Name: "queue_dropped", Unit: "packets", Label: "dropped by the link"},
	{Name: "busy", Unit: "%", Label: "processors busy"},
}

// measure computes the figures of the frames that count.
func (s *streaming) measure(o *experiment.Outcome, frames []direct.Frame) {
	if s.Clouds > 0 {
		frames = frames[:min(len(frames), s.Clouds)]
		if len(frames) < s.Clouds {
			o.Note("%s: %d of %d clouds arrived within the time.", s.cell(), len(frames), s.Clouds)
		}
	}
	var sent, intact []direct.Frame
	for i := range frames {
		if frames[i].Sent() {
			sent = append(sent, frames[i])
			if frames[i].Outcome == direct.Intact {
				intact = append(intact, frames[i])
			}
		}
	}
	if len(sent) < 2 {
		o.Invalidate("%d frames were sent, expected two or more", len(sent))
		return
	}
	o.Sample("producer_processing", direct.Span(frames, direct.Captured, direct.Encoded))
	o.Sample("compression", direct.Span(frames, direct.Sampled, direct.Encoded))
	o.Sample("producer_transmission", direct.Span(sent, direct.FirstSent, direct.LastSent))
	o.Sample("consumer_processing", direct.Span(intact, direct.DecodeBegun, direct.Shown))
	o.Sample("decompression", direct.Span(intact, direct.DecodeBegun, direct.Decoded))
	o.Sample("rendering", direct.Span(intact, direct.Decoded, direct.Shown))
	o.Sample("consumer_transmission", gaps(sent))
	o.Sample("next_frame", direct.Span(intact, direct.LastReceived, direct.Reassembled))
	s.measureSizes(o, sent)
	o.Set("reliability", 100*float64(len(intact))/float64(len(sent)))
	latencies := direct.Span(intact, direct.Capture, direct.Shown)
	if len(latencies) == 0 {
		o.Note("%s: no frame arrived complete.", s.cell())
		return
	}
	o.Sample("end_to_end", latencies)
	o.Set("end_to_end_min", experiment.Quantile(latencies, 0))
	o.Set("end_to_end_p95", experiment.Quantile(latencies, 0.95))
	o.Set("end_to_end_deviation", direct.Deviation(latencies))
	o.Series("end to end", "cloud", "ms", overClouds(intact))
}

func (s *streaming) measureSizes(o *experiment.Outcome, sent []direct.Frame) {
	const mega = 1e6
	var sizes, at30, perPoint []float64
	total := 0.0
	for _, f := range sent {
		sizes = append(sizes, float64(f.Bytes)/mega)
		at30 = append(at30, 30*float64(f.Wire)/mega)
		perPoint = append(perPoint, 8*float64(f.Bytes)/float64(max(f.Points, 1)))
		total += float64(f.Wire)
	}
	o.Sample("pc_size", sizes)
	o.Sample("bitrate30", at30)
	o.Sample("bits_per_point", perPoint)
	// The interval from the first packet of the first frame to the first packet of the last frame contains all frames
	// except one.
	took := float64(sent[len(sent)-1].FirstSent-sent[0].FirstSent) / 1e6
	if took > 0 {
		all := float64(len(sent))
		o.Set("fps", (all-1)/took)
		o.Set("bitrate", total*(all-1)/all/took/mega)
	}
}

// cell names the parameters in notes.
func (s *streaming) cell() string {
	return experiment.Parameters{{Name: "scene", Value: s.Scene}, {Name: "bits", Value: s.Bits},
		{Name: "level", Value: s.Level}, {Name: "gap", Value: s.Gap}}.String()
}

// gaps returns the milliseconds between consecutive complete frames.
func gaps(frames []direct.Frame) (ms []float64) {
	before := direct.Instant(0)
	for _, f := range frames {
		if f.Reassembled == 0 {
			continue
		}
		if before != 0 && f.Reassembled > before {
			ms = append(ms, float64(f.Reassembled-before)/1e3)
		}
		before = f.Reassembled
	}
	return ms
}

// overClouds returns the latency of each frame over the frame's number, counted from the first frame.
func overClouds(frames []direct.Frame) (points [][2]float64) {
	for _, f := range frames {
		if f.Shown != 0 {
			points = append(points, [2]float64{float64(f.Number - frames[0].Number), float64(f.Shown-f.Capture) / 1e3})
		}
	}
	return points
}
