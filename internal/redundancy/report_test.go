package redundancy_test

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/pion/rtcp"

	"github.com/volsfu/volsfu/internal/redundancy"
)

// sample is a report of which every field has another value.
var sample = redundancy.Report{
	Sender: 0x01020304, Time: 0xfffffff0,
	Paths: [redundancy.Paths]redundancy.PathReport{
		{Known: true, SSRC: 0x11121314, Sequence: 0x2122, Arrived: 0x31323334, Packets: 0x41424344},
		{Known: true, SSRC: 0x51525354, Sequence: 0x6162, Arrived: 0x71727374, Packets: 0x81828384},
	},
}

// TestReport checks that a report survives its encoding, and that another implementation of RTCP reads its header.
func TestReport(t *testing.T) {
	for name, want := range map[string]redundancy.Report{
		"full": sample, "second path unknown": {Sender: 1, Time: 2, Paths: [redundancy.Paths]redundancy.PathReport{
			{Known: true, SSRC: 3, Sequence: 4, Arrived: 5, Packets: 6},
		}}, "empty": {},
	} {
		packet := want.Append(nil)
		if len(packet) != redundancy.ReportBytes || !redundancy.IsReport(packet) {
			t.Errorf("%s: report has %d bytes, is one: %v", name, len(packet), redundancy.IsReport(packet))
		}
		if got, err := redundancy.ParseReport(packet); err != nil || got != want {
			t.Errorf("%s: read %+v, %v, expected %+v", name, got, err, want)
		}
		packets, err := rtcp.Unmarshal(packet)
		if err != nil || len(packets) != 1 {
			t.Fatalf("%s: %v, %v", name, packets, err)
		}
		app, ok := packets[0].(*rtcp.ApplicationDefined)
		if !ok || app.Name != "VPTH" || app.SSRC != want.Sender || app.SubType != 0 {
			t.Errorf("%s: read as %v", name, packets[0])
		}
	}
}

func TestMalformedReports(t *testing.T) {
	valid := sample.Append(nil)
	for name, change := range map[string]func([]byte) []byte{
		"truncated": func(b []byte) []byte { return b[:len(b)-1] },
		"longer":    func(b []byte) []byte { return append(b, 0, 0, 0, 0) },
		"version":   func(b []byte) []byte { b[0] = 1 << 6; return b },
		"padding":   func(b []byte) []byte { b[0] |= 1 << 5; return b },
		"subtype":   func(b []byte) []byte { b[0]++; return b },
		"length":    func(b []byte) []byte { b[3]++; return b },
		"flags":     func(b []byte) []byte { b[12+4+7] = 2; return b },
	} {
		r, err := redundancy.ParseReport(change(bytes.Clone(valid)))
		if !errors.Is(err, redundancy.ErrReport) {
			t.Errorf("%s: read %+v, %v, expected %v", name, r, err, redundancy.ErrReport)
		}
	}
	for name, packet := range map[string][]byte{
		"receiver report": {0x80, 201, 0, 0}, "other application": append(append([]byte(nil), valid[:8]...), "NAME"...),
		"short": {0x80, 204, 0, 0}, "one byte": {0x80}, "empty": nil,
	} {
		if redundancy.IsReport(packet) {
			t.Errorf("%s: counts as a report", name)
		}
	}
}

func FuzzReport(f *testing.F) {
	f.Add(sample.Append(nil))
	f.Add((&redundancy.Report{}).Append(nil))
	f.Fuzz(func(t *testing.T, packet []byte) {
		if !redundancy.IsReport(packet) {
			return
		}
		r, err := redundancy.ParseReport(packet)
		if err != nil {
			return
		}
		if again, err := redundancy.ParseReport(r.Append(nil)); err != nil || again != r {
			t.Errorf("read %+v, %v, then %+v", r, err, again)
		}
	})
}

// TestDoubledArrivals: the second of two packets that left on one path does not count, a copy on the other path does.
func TestDoubledArrivals(t *testing.T) {
	r := redundancy.NewRecorder(1, start)
	for n, arrival := range []struct {
		path     uint8
		sequence uint16
		counts   bool
	}{{0, 7, true}, {0, 7, false}, {1, 7, true}, {0, 8, true}, {1, 7, false}, {1, 8, true}, {2, 9, false}} {
		if got := r.Arrived(arrival.path, 5, arrival.sequence, start); got != arrival.counts {
			t.Errorf("arrival %d counts: %v, expected %v", n, got, arrival.counts)
		}
	}
	report, err := redundancy.ParseReport(r.AppendReport(nil, start.Add(time.Second)))
	if err != nil || report.Paths[0].Packets != 2 || report.Paths[1].Packets != 2 {
		t.Errorf("the report is %+v, %v, expected 2 packets on each path", report, err)
	}
}
