package transport

import (
	"strings"
	"testing"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// TestReportsByStreamAreAgreedOn: answerers prefer RFC 8888 or not, with and without lines that they send on.
func TestReportsByStreamAreAgreedOn(t *testing.T) {
	for _, test := range []struct {
		name             string
		prefers, sends   bool
		offered          func(string) string
		byStream, number bool
	}{
		{name: "nothing preferred", sends: true, number: true},
		{name: "preferred", prefers: true, sends: true, byStream: true, number: true},
		{name: "preferred by who only receives", prefers: true, byStream: true},
		{
			name: "preferred and not offered", prefers: true, sends: true, number: true,
			offered: func(offer string) string { return without(offer, "a=rtcp-fb:* ack ccfb") },
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			offers, answers := newLone(t, loopbackConfig()), newLone(t, loopbackConfig())
			var offer string
			if test.sends {
				offer = offerLines(t, offers)
			} else {
				if _, err := offers.AddSending(volumetric.KindVideo, "slot"); err != nil {
					t.Fatal(err)
				}
				var err error
				if offer, err = offers.Offer(false); err != nil {
					t.Fatal(err)
				}
			}
			if strings.Count(offer, "\r\na=rtcp-fb:* ack ccfb\r\n") == 0 {
				t.Errorf("the offer has no congestion control feedback:\n%s", offer)
			}
			if test.offered != nil {
				offer = test.offered(offer)
			}
			if test.prefers {
				answers.PreferReportsByStream()
			}
			if _, err := answers.Offered(offer); err != nil {
				t.Fatal(err)
			}
			if test.sends {
				for _, mid := range []string{"0", "2"} {
					if _, err := answers.Sending(mid); err != nil {
						t.Fatal(err)
					}
				}
			}
			answer, err := answers.Answer()
			if err != nil {
				t.Fatal(err)
			}
			if _, err := offers.Answered(answer); err != nil {
				t.Fatal(err)
			}
			for _, p := range []*Peer{offers, answers} {
				if p.ReportsByStream() != test.byStream || p.TransportSequenceID() != 0 != test.number {
					t.Errorf("by stream: %v, numbers have the identifier %d, after the answer\n%s", p.ReportsByStream(),
						p.TransportSequenceID(), answer)
				}
			}
		})
	}
}
