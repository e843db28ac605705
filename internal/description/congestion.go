package description

import "slices"

const (
	// congestionFeedback names reports of arrivals by RFC 8888 (section 6), transportFeedback those of transport-wide congestion control.
	congestionFeedback = "ack ccfb"
	transportFeedback  = "transport-cc"
)

// TakeCongestionFeedback makes an answer, as Answer made it, say that arrivals are reported by RFC 8888, and not by transport-wide numbers, on the lines that it
// only receives on and for which the offer has both. What it sends is numbered as before.
func TakeCongestionFeedback(offer, answer *Description) {
	for i := range answer.Lines {
		l := &answer.Lines[i]
		if l.Rejected || l.Direction != DirectionRecvOnly || !offer.Lines[i].CongestionFeedback {
			continue
		}
		l.CongestionFeedback = true
		for c := range l.Codecs {
			l.Codecs[c].Feedback = slices.DeleteFunc(l.Codecs[c].Feedback, func(f string) bool { return f == transportFeedback })
		}
		l.Extensions = slices.DeleteFunc(l.Extensions, func(e Extension) bool { return e.URI == TransportWideCC })
	}
}

// ReportsByStream tells of an answer whether arrivals on all lines that it receives on, and there are some, are reported by RFC 8888 and not by transport-wide
// numbers. Lines that name both are reported on as before there was RFC 8888.
func (d *Description) ReportsByStream() bool {
	receives := false
	for i := range d.Lines {
		l := &d.Lines[i]
		if l.Rejected || !l.Direction.Receives() {
			continue
		}
		numbered := slices.ContainsFunc(l.Codecs, func(c Codec) bool { return slices.Contains(c.Feedback, transportFeedback) })
		if numbered || !l.CongestionFeedback {
			return false
		}
		receives = true
	}
	return receives
}
