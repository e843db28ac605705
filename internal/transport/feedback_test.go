package transport

import (
	"strings"
	"testing"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// TestReportsByStreamAreAgreedOn: answerers prefer RFC 8888 or not, and send, receive, or both.
func TestReportsByStreamAreAgreedOn(t *testing.T) {
	const offered = "a=rtcp-fb:* ack ccfb"
	// formerly is the offer of a server that offers RFC 8888 only on the lines on which it sends.
	formerly := func(offer string) string {
		sections := strings.Split(offer, "\r\nm=")
		for i, section := range sections {
			if strings.Contains(section, "a=recvonly") {
				sections[i] = strings.ReplaceAll(section, "\r\n"+offered, "")
			}
		}
		return strings.Join(sections, "\r\nm=")
	}
	for _, test := range []struct {
		name            string
		prefers         bool
		sends, receives bool
		change          func(string) string
		// down and up are set if arrivals are reported by stream of the offerer's and the answerer's packets.
		down, up bool
		number   bool
	}{
		{name: "nothing preferred", sends: true, receives: true, number: true},
		{name: "preferred", prefers: true, sends: true, receives: true, down: true, up: true},
		{name: "preferred by who only receives", prefers: true, receives: true, down: true},
		{name: "preferred by who only sends", prefers: true, sends: true, up: true},
		{
			name: "preferred and not offered", prefers: true, sends: true, receives: true, number: true,
			change: func(offer string) string { return without(offer, offered) },
		},
		{
			name: "preferred and offered as formerly", prefers: true, sends: true, receives: true, down: true,
			number: true, change: formerly,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			offers, answers := newLone(t, loopbackConfig()), newLone(t, loopbackConfig())
			var sending []string
			for _, kind := range []volumetric.Kind{volumetric.KindVideo, volumetric.KindAudio} {
				if test.sends {
					line, err := offers.AddReceiving(kind)
					if err != nil {
						t.Fatal(err)
					}
					sending = append(sending, line.MID())
				}
				if test.receives {
					if _, err := offers.AddSending(kind, "slot"); err != nil {
						t.Fatal(err)
					}
				}
			}
			offers.AddData()
			offer, err := offers.Offer(false)
			if err != nil {
				t.Fatal(err)
			}
			// Chromium requires the line in every section with RTP, and none has it twice.
			for _, section := range strings.Split(offer, "\r\nm=")[1:] {
				want := 1
				if strings.HasPrefix(section, "application") {
					want = 0
				}
				if n := strings.Count(section, "\r\n"+offered); n != want {
					t.Errorf("%d times %q in a section, expected %d:\n%s", n, offered, want, section)
				}
			}
			if test.change != nil {
				offer = test.change(offer)
			}
			if test.prefers {
				answers.PreferReportsByStream()
			}
			if _, err := answers.Offered(offer); err != nil {
				t.Fatal(err)
			}
			for _, mid := range sending {
				if _, err := answers.Sending(mid); err != nil {
					t.Fatal(err)
				}
			}
			answer, err := answers.Answer()
			if err != nil {
				t.Fatal(err)
			}
			if _, err := offers.Answered(answer); err != nil {
				t.Fatal(err)
			}
			for _, p := range []struct {
				*Peer
				reports, accepts bool
			}{{offers, test.down, test.up}, {answers, test.up, test.down}} {
				if p.ReportsByStream() != p.reports || p.AcceptsReportsByStream() != p.accepts ||
					p.TransportSequenceID() != 0 != test.number {
					t.Errorf("reports by stream: %t, accepts them: %t, numbers have the identifier %d, "+
						"expected %t, %t, %t after the answer\n%s", p.ReportsByStream(), p.AcceptsReportsByStream(),
						p.TransportSequenceID(), p.reports, p.accepts, test.number, answer)
				}
			}
		})
	}
}
