package paper000

import (
	"context"

	"github.com/volsfu/volsfu/lab/experiment"
	"github.com/volsfu/volsfu/lab/experiment/cast"
	"github.com/volsfu/volsfu/lab/experiment/direct"
	"github.com/volsfu/volsfu/pkg/frametimes"
)

// defaultBreakdown has three competitors, like figure 12.
func defaultBreakdown() stage {
	s := defaultStage()
	s.Flows = 3
	return s
}

// breakdownQuantities are the stages of complete frames. Transport is from encoded to the last packet received,
// including the time in pacers. Waits are the remainder of the whole: for the encoder, the decoder and the display.
var breakdownQuantities = []experiment.Quantity{
	{Name: "encoding", Unit: "ms", Label: "encoding"},
	{Name: "transport", Unit: "ms", Label: "transport"},
	{Name: "decoding", Unit: "ms", Label: "decoding"},
	{Name: "rendering", Unit: "ms", Label: "rendering"},
	{Name: "waits", Unit: "ms", Label: "waits"},
	{Name: "end_to_end", Unit: "ms", Label: "end to end, no camera"},
	{Name: "end_to_end_p95", Unit: "ms", Label: "end to end, 95th percentile"},
	{Name: "end_to_end_deviation", Unit: "ms", Label: "end to end, deviation"},
	{Name: "throughput", Unit: "Mbit/s", Label: "received"},
	{Name: "time_bound", Unit: "%", Label: "frames bound by encoding"},
}

// runBreakdown measures one iteration. All senders encode as they capture.
func runBreakdown(ctx context.Context, s stage, settings experiment.Settings) (*experiment.Outcome, error) {
	n, skipped, err := s.open(ctx, &settings)
	if skipped != nil || err != nil {
		return skipped, err
	}
	defer func() { _ = n.cast.Close() }()
	p, err := n.perform(ctx, func() (session, error) {
		if s.individual() {
			return n.startIndividual(ctx, "--render")
		}
		return n.startLive(ctx)
	})
	if err != nil {
		return nil, err
	}
	outcome := experiment.NewOutcome()
	for _, note := range p.notes {
		outcome.Note("%s", note)
	}
	outcome.Note("The camera is not measured: this machine has none. The paper's camera takes 104 ms.")
	var stages stages
	if s.individual() {
		stages = p.stagesOfLog(n)
	} else {
		stages = p.stagesOfRecords(n)
		outcome.Note("%s: rendering is not measured, because the client shows frames when they are decoded.", s.Sender)
	}
	stages.set(outcome)
	seconds := perSecond(p.list, p.length)
	if from := int(p.stable); from < len(seconds) {
		outcome.Sample("throughput", seconds[from:])
	}
	outcome.Set("time_bound", 100*p.bound)
	n.judge(outcome, p)
	return outcome, nil
}

// stages are the milliseconds of each frame's stages; all is from capture to the end of the last stage.
type stages struct{ encoding, transport, decoding, rendering, all []float64 }

// set sets the figures. The remainder of the whole is waits.
func (s *stages) set(o *experiment.Outcome) {
	o.Sample("encoding", s.encoding)
	o.Sample("transport", s.transport)
	o.Sample("decoding", s.decoding)
	o.Sample("rendering", s.rendering)
	if len(s.all) == 0 {
		return
	}
	o.Sample("end_to_end", s.all)
	o.Set("end_to_end_p95", experiment.Quantile(s.all, 0.95))
	o.Set("end_to_end_deviation", direct.Deviation(s.all))
	known := experiment.Mean(s.encoding) + experiment.Mean(s.transport) +
		experiment.Mean(s.decoding) + experiment.Mean(s.rendering)
	o.Set("waits", experiment.Mean(s.all)-known)
}

// counts reports whether a frame captured at a time, in seconds since the run began, belongs to the stable state.
func (p *performance) counts(at float64) bool { return at >= p.stable && at < p.length }

// stagesOfLog returns the stages of the complete frames of vollab direct in the stable state.
func (p *performance) stagesOfLog(n *network) (s stages) {
	var whole []direct.Frame
	for i := range p.frames {
		if f := &p.frames[i]; f.Outcome == direct.Intact && f.Shown != 0 && p.counts(f.Capture.Since(n.Began)) {
			whole = append(whole, *f)
		}
	}
	s.encoding = direct.Span(whole, direct.Taken, direct.Encoded)
	s.transport = direct.Span(whole, direct.Encoded, direct.LastReceived)
	s.decoding = direct.Span(whole, direct.DecodeBegun, direct.Decoded)
	s.rendering = direct.Span(whole, direct.Decoded, direct.Shown)
	s.all = direct.Span(whole, direct.Capture, direct.Shown)
	return s
}

// stagesOfRecords returns the stages of the decoded frames of vollab peer in the stable state.
func (p *performance) stagesOfRecords(n *network) (s stages) {
	var decoded []frametimes.Record
	for _, r := range cast.Join(p.sent, p.received) {
		if r.Has(frametimes.Decoded) && p.counts(r.Time(frametimes.Captured).Sub(n.Began).Seconds()) {
			decoded = append(decoded, r)
		}
	}
	s.encoding = cast.Layer(decoded, frametimes.Encoding)
	s.transport = cast.Between(decoded, frametimes.Encoded, frametimes.LastReceived)
	s.decoding = cast.Layer(decoded, frametimes.Decoding)
	s.all = cast.Layer(decoded, frametimes.Service)
	return s
}
