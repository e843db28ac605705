package description

import "slices"

const (
	// congestionFeedback is the a=rtcp-fb value of reports by RFC 8888 (section 6), transportFeedback that of
	// transport-wide congestion control.
	congestionFeedback = "ack ccfb"
	transportFeedback  = "transport-cc"
)

// TakeCongestionFeedback changes an answer made by Answer so that arrivals are reported by RFC 8888, and not by
// transport-wide numbers, on the lines for which the offer has RFC 8888.
func TakeCongestionFeedback(offer, answer *Description) {
	for i := range answer.Lines {
		l := &answer.Lines[i]
		if l.Rejected || !offer.Lines[i].CongestionFeedback {
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

// ReportsByStream reports whether the answering side receives, and reports the arrivals of all its lines by RFC 8888
// and not by transport-wide numbers. Lines with both are reported by transport-wide numbers.
func (d *Description) ReportsByStream() bool { return d.byStream(Direction.Receives) }

// AcceptsReportsByStream reports whether the answering side sends, and arrivals on all its lines are reported to it by
// RFC 8888 and not by transport-wide numbers.
func (d *Description) AcceptsReportsByStream() bool { return d.byStream(Direction.Sends) }

// byStream reports whether an answer has lines of a direction, and arrivals on all of them are reported by RFC 8888.
func (d *Description) byStream(concerns func(Direction) bool) bool {
	found := false
	for i := range d.Lines {
		l := &d.Lines[i]
		if l.Rejected || l.Kind == KindData || !concerns(l.Direction) {
			continue
		}
		numbered := slices.ContainsFunc(l.Codecs,
			func(c Codec) bool { return slices.Contains(c.Feedback, transportFeedback) })
		if numbered || !l.CongestionFeedback {
			return false
		}
		found = true
	}
	return found
}
