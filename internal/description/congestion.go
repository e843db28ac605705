package description

import "slices"

const (
	// congestionFeedback is the a=rtcp-fb value of reports by RFC 8888 (section 6), transportFeedback that of
	// transport-wide congestion control.
	congestionFeedback = "ack ccfb"
	transportFeedback  = "transport-cc"
)

// TakeCongestionFeedback changes an answer made by Answer so that arrivals are reported by RFC 8888, and not by
// transport-wide numbers, on the receive-only lines for which the offer has both. The numbering of sent packets does
// not change.
func TakeCongestionFeedback(offer, answer *Description) {
	for i := range answer.Lines {
		l := &answer.Lines[i]
		if l.Rejected || l.Direction != DirectionRecvOnly || !offer.Lines[i].CongestionFeedback {
			continue
		}
		l.CongestionFeedback = true
		for c := range l.Codecs {
			l.Codecs[c].Feedback = slices.DeleteFunc(l.Codecs[c].Feedback,
				func(f string) bool { return f == transportFeedback })
		}
		l.Extensions = slices.DeleteFunc(l.Extensions, func(e Extension) bool { return e.URI == TransportWideCC })
	}
}

// ReportsByStream reports whether an answer has receiving lines, and arrivals on all of them are reported by RFC 8888
// and not by transport-wide numbers. Lines with both are reported by transport-wide numbers.
func (d *Description) ReportsByStream() bool {
	receives := false
	for i := range d.Lines {
		l := &d.Lines[i]
		if l.Rejected || !l.Direction.Receives() {
			continue
		}
		numbered := slices.ContainsFunc(l.Codecs,
			func(c Codec) bool { return slices.Contains(c.Feedback, transportFeedback) })
		if numbered || !l.CongestionFeedback {
			return false
		}
		receives = true
	}
	return receives
}
