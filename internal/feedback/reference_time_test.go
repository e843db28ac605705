package feedback

import (
	"testing"
	"time"

	"github.com/pion/rtcp"
)

func TestReferenceTimes(t *testing.T) {
	var times ReferenceTimes
	now := time.Unix(1000, 0)
	lost := &rtcp.LossRLEReportBlock{SSRC: 3}
	report := &rtcp.ExtendedReport{SenderSSRC: 1, Reports: []rtcp.ReportBlock{lost,
		&rtcp.ReceiverReferenceTimeReportBlock{NTPTimestamp: 0x0123_4567_89ab_cdef}}}
	if reply, ok := times.Reply(&rtcp.ExtendedReport{Reports: []rtcp.ReportBlock{lost}}, 7, now); ok {
		t.Errorf("a report without a reference time: %v", reply)
	}
	reply, ok := times.Reply(report, 7, now)
	if !ok {
		t.Fatal("no reply")
	}
	// The reply as the receiver reads it (RFC 3611 section 4.5).
	wire, err := rtcp.Marshal([]rtcp.Packet{reply})
	if err != nil {
		t.Fatal(err)
	}
	want := []byte{0x80, 207, 0, 5, 0, 0, 0, 7, 5, 0, 0, 3, 0, 0, 0, 1, 0x45, 0x67, 0x89, 0xab, 0, 0, 0, 0}
	if string(wire) != string(want) {
		t.Errorf("reply % x, expected % x", wire, want)
	}
	for _, at := range []struct {
		after   time.Duration
		replies bool
	}{{0, false}, {99 * time.Millisecond, false}, {100 * time.Millisecond, true}, {150 * time.Millisecond, false}} {
		if _, ok := times.Reply(report, 7, now.Add(at.after)); ok != at.replies {
			t.Errorf("%v after the first reply: %v, expected %v", at.after, ok, at.replies)
		}
	}
}
