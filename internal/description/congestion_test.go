package description

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// offerOfBothFeedbacks is offerOfFour with congestion control feedback on the sending lines.
func offerOfBothFeedbacks() *Description {
	offer := offerOfFour()
	for i := range offer.Lines {
		offer.Lines[i].CongestionFeedback = offer.Lines[i].Direction.Sends()
	}
	return offer
}

// TestCongestionFeedbackIsOffered checks the one line of RFC 8888 section 6 for all payload types, and its parsing.
func TestCongestionFeedbackIsOffered(t *testing.T) {
	offer := offerOfBothFeedbacks()
	text := offer.Marshal()
	for i, section := range sections(text)[1:] {
		want := 0
		if offer.Lines[i].CongestionFeedback {
			want = 1
		}
		if n := strings.Count(section, "a=rtcp-fb:* ack ccfb\r\n"); n != want ||
			strings.Count(section, "ccfb") != want {
			t.Errorf("line %d has it %d times, expected %d\n%s", i, n, want, section)
		}
	}
	read := parsed(t, text)
	if !reflect.DeepEqual(read.Lines, offer.Lines) {
		t.Errorf("read\n%+v, expected\n%+v", read.Lines, offer.Lines)
	}
	// For one payload type it means the same.
	if read := parsed(t, replaced("a=rtcp-fb:* ack ccfb",
		"a=rtcp-fb:96 ack ccfb")(text)); !read.Lines[1].CongestionFeedback || read.Lines[0].CongestionFeedback {
		t.Error("feedback for one payload type is not read as that for all")
	}
}

// TestCongestionFeedbackIsTaken answers with and without it: lines that only receive are reported by it and have no
// transport-wide numbers; sending lines keep them.
func TestCongestionFeedbackIsTaken(t *testing.T) {
	offer := parsed(t, offerOfBothFeedbacks().Marshal())
	answer := answerOfFour(t)
	if answer.ReportsByStream() || strings.Contains(answer.Marshal(), "ccfb") {
		t.Error("an answer has congestion control feedback that was not offered")
	}
	TakeCongestionFeedback(offer, answer)
	read := parsed(t, answer.Marshal())
	if err := CheckAnswer(offer, read); err != nil {
		t.Fatal(err)
	}
	if !read.ReportsByStream() {
		t.Errorf("arrivals are not reported by RFC 8888 by\n%s", answer.Marshal())
	}
	for i, l := range read.Lines {
		receives := l.Direction == DirectionRecvOnly
		numbered := slices.ContainsFunc(l.Extensions, func(e Extension) bool { return e.URI == TransportWideCC })
		for _, c := range l.Codecs {
			numbered = numbered || slices.Contains(c.Feedback, transportFeedback)
		}
		if l.CongestionFeedback != receives || numbered == receives {
			t.Errorf("line %d: %+v", i, l)
		}
	}
	if nacks := read.Lines[1].Codecs[0].Feedback; !slices.Contains(nacks, "nack") {
		t.Errorf("of the other feedback %v is left", nacks)
	}
	// The offer and the known codecs do not change.
	if !reflect.DeepEqual(offer, parsed(t, offerOfBothFeedbacks().Marshal())) {
		t.Error("the offer has changed")
	}
}

// TestWhereCongestionFeedbackIsNotTaken has answers with both forms, with one form on some lines only, and without an
// offer.
func TestWhereCongestionFeedbackIsNotTaken(t *testing.T) {
	offer := offerOfBothFeedbacks()
	answer := answerOfFour(t)
	TakeCongestionFeedback(offer, answer)
	text := answer.Marshal()
	both := strings.ReplaceAll(text, "a=rtcp-fb:* ack ccfb\r\n", "a=rtcp-fb:* ack ccfb\r\na=rtcp-fb:* transport-cc\r\n")
	if parsed(t, both).ReportsByStream() {
		t.Error("an answer with both forms counts as RFC 8888")
	}
	some := parsed(t, text)
	some.Lines[3].CongestionFeedback = false
	if some.ReportsByStream() {
		t.Error("an answer with RFC 8888 on one line of two counts as RFC 8888")
	}
	if (&Description{}).ReportsByStream() {
		t.Error("an answer that receives nothing counts as RFC 8888")
	}
	if err := CheckAnswer(offerOfFour(), parsed(t, text)); !errors.Is(err, ErrDescription) ||
		!strings.Contains(err.Error(), "not offered") {
		t.Errorf("got %v of an extension that was not offered", err)
	}
	plain := answerOfFour(t)
	if TakeCongestionFeedback(offerOfFour(), plain); !reflect.DeepEqual(plain, answerOfFour(t)) {
		t.Error("an answer accepts an extension that was not offered")
	}
}
