package description

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// offerOfBothFeedbacks is offerOfFour with congestion control feedback on the lines for which chosen returns true.
func offerOfBothFeedbacks(chosen func(Direction) bool) *Description {
	offer := offerOfFour()
	for i := range offer.Lines {
		offer.Lines[i].CongestionFeedback = chosen(offer.Lines[i].Direction)
	}
	return offer
}

// everyLine chooses all lines, as the server does. Older servers choose those of Direction.Sends.
func everyLine(Direction) bool { return true }

// numbered reports whether a line has transport-wide numbers.
func numbered(l *Line) bool {
	return slices.ContainsFunc(l.Extensions, func(e Extension) bool { return e.URI == TransportWideCC }) ||
		slices.ContainsFunc(l.Codecs, func(c Codec) bool { return slices.Contains(c.Feedback, transportFeedback) })
}

// TestCongestionFeedbackIsOffered checks the one line of RFC 8888 section 6 for all payload types, and its parsing.
func TestCongestionFeedbackIsOffered(t *testing.T) {
	offer := offerOfBothFeedbacks(Direction.Sends)
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

// TestCongestionFeedbackIsTaken answers offers with it on every line, on the sending lines only, and without it. Lines
// with it have no transport-wide numbers; the others keep them.
func TestCongestionFeedbackIsTaken(t *testing.T) {
	for name, test := range map[string]struct {
		chosen           func(Direction) bool
		reports, accepts bool
	}{
		"every line":        {everyLine, true, true},
		"the sending lines": {Direction.Sends, true, false},
		"no line":           {func(Direction) bool { return false }, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			offer := parsed(t, offerOfBothFeedbacks(test.chosen).Marshal())
			answer := answerOfFour(t)
			if answer.ReportsByStream() || answer.AcceptsReportsByStream() ||
				strings.Contains(answer.Marshal(), "ccfb") {
				t.Error("an answer has congestion control feedback before it is taken")
			}
			TakeCongestionFeedback(offer, answer)
			read := parsed(t, answer.Marshal())
			if err := CheckAnswer(offer, read); err != nil {
				t.Fatal(err)
			}
			if read.ReportsByStream() != test.reports || read.AcceptsReportsByStream() != test.accepts {
				t.Errorf("reports by stream: %t, accepts them: %t, expected %t and %t by\n%s", read.ReportsByStream(),
					read.AcceptsReportsByStream(), test.reports, test.accepts, answer.Marshal())
			}
			for i := range read.Lines {
				l := &read.Lines[i]
				if taken := offer.Lines[i].CongestionFeedback; l.CongestionFeedback != taken || numbered(l) == taken {
					t.Errorf("line %d: %+v", i, l)
				}
			}
			if nacks := read.Lines[1].Codecs[0].Feedback; !slices.Contains(nacks, "nack") {
				t.Errorf("of the other feedback %v is left", nacks)
			}
			// The offer and the known codecs do not change.
			if !reflect.DeepEqual(offer, parsed(t, offerOfBothFeedbacks(test.chosen).Marshal())) {
				t.Error("the offer has changed")
			}
		})
	}
}

// chromiumTakes changes an answer as Chromium with RFC 8888 does, which accepts all or none: it takes congestion
// control feedback on all lines and removes transport-wide numbers if every RTP line of the offer has it, rejected
// lines included. Otherwise it ignores the feedback on all lines ("Inconsistent rtcp_fb_ack_ccfb marking, ignoring
// all").
func chromiumTakes(offer, answer *Description) {
	for i := range offer.Lines {
		if offer.Lines[i].Kind != KindData && !offer.Lines[i].CongestionFeedback {
			return
		}
	}
	TakeCongestionFeedback(offer, answer)
}

// TestChromiumAcceptsAllOrNone answers as Chromium does, beside a line with data channels. Chromium as answerer reports
// by stream, and accepts such reports, exactly if every RTP line of the offer has the feedback.
func TestChromiumAcceptsAllOrNone(t *testing.T) {
	for lacking := range 5 { // no line lacks it for 4
		offer := offerOfBothFeedbacks(everyLine)
		if lacking < len(offer.Lines) {
			offer.Lines[lacking].CongestionFeedback = false
		}
		offer.Lines = append(offer.Lines,
			Line{MID: "4", Kind: KindData, Direction: DirectionSendRecv, DataPort: DataPort})
		answer := answerOfFour(t)
		// Unlike this package as an answerer, Chromium accepts the line.
		answer.Lines = append(answer.Lines, offer.Lines[4])
		offer = parsed(t, offer.Marshal())
		chromiumTakes(offer, answer)
		answer = parsed(t, answer.Marshal())
		if err := CheckAnswer(offer, answer); err != nil {
			t.Fatal(err)
		}
		if want := lacking == 4; answer.ReportsByStream() != want || answer.AcceptsReportsByStream() != want {
			t.Errorf("without the feedback on line %d: reports by stream: %t, accepts them: %t, expected %t", lacking,
				answer.ReportsByStream(), answer.AcceptsReportsByStream(), want)
		}
		for i := range answer.Lines[:4] {
			if l := &answer.Lines[i]; numbered(l) == (lacking == 4) {
				t.Errorf("without the feedback on line %d, line %d is %+v", lacking, i, l)
			}
		}
	}
}

// TestWhereCongestionFeedbackIsNotTaken has answers with both forms, with one form on some lines only, and without an
// offer.
func TestWhereCongestionFeedbackIsNotTaken(t *testing.T) {
	offer := offerOfBothFeedbacks(everyLine)
	answer := answerOfFour(t)
	TakeCongestionFeedback(offer, answer)
	text := answer.Marshal()
	both := strings.ReplaceAll(text, "a=rtcp-fb:* ack ccfb\r\n", "a=rtcp-fb:* ack ccfb\r\na=rtcp-fb:* transport-cc\r\n")
	if d := parsed(t, both); d.ReportsByStream() || d.AcceptsReportsByStream() {
		t.Error("an answer with both forms counts as RFC 8888")
	}
	some := parsed(t, text)
	some.Lines[3].CongestionFeedback = false
	if some.ReportsByStream() || !some.AcceptsReportsByStream() {
		t.Error("an answer with RFC 8888 on one receiving line of two counts as RFC 8888, or the sending lines do not")
	}
	some.Lines[3].CongestionFeedback, some.Lines[0].CongestionFeedback = true, false
	if some.AcceptsReportsByStream() || !some.ReportsByStream() {
		t.Error("an answer with RFC 8888 on one sending line of two counts as RFC 8888, or the receiving lines do not")
	}
	if empty := (&Description{}); empty.ReportsByStream() || empty.AcceptsReportsByStream() {
		t.Error("an answer that receives nothing and sends nothing counts as RFC 8888")
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
