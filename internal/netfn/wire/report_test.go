package wire

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"
)

// sampleReport has every field set.
func sampleReport() Report {
	r := Report{Rule: 3, Epoch: 0x1234, Serial: 0xdeadbeef, Sampling: 5, Seen: true, Newest: 0xfffffff0,
		Numbers: 120, Missed: 2, Slow: 14, Rows: []Row{{Sent: 3, InTime: 3, Short: 90, Long: 900},
			{Sent: 3, InTime: 2, Short: 0, Long: 65535}}}
	r.Paths[0] = PathReport{Copies: 1000, InTime: 900, Slow: 110, Lost: 1, Beats: 10, BeatsInTime: 9, Delay: 123,
		Spread: 500}
	r.Paths[7] = PathReport{Beats: 1}
	return r
}

func TestReportRoundTrip(t *testing.T) {
	full := Report{Serial: 1, Numbers: 1}
	for i := range full.Paths {
		full.Paths[i] = PathReport{Copies: 1}
	}
	for i := range MaxReportRows {
		full.Rows = append(full.Rows, Row{Sent: 0xff, InTime: uint8(i)})
	}
	for name, want := range map[string]Report{"zero": {}, "sample": sampleReport(), "full": full} {
		b, err := want.AppendBinary([]byte("head"))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if !bytes.HasPrefix(b, []byte("head")) || len(b)-4 > MaxReportSize {
			t.Errorf("%s: %d bytes begin with %q", name, len(b)-4, b[:4])
		}
		var got Report
		if err := got.UnmarshalBinary(b[4:]); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if len(got.Rows) == 0 {
			got.Rows = nil
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, want %+v", name, got, want)
		}
		if name == "full" && len(b)-4 != MaxReportSize {
			t.Errorf("the fullest report has %d bytes, MaxReportSize is %d", len(b)-4, MaxReportSize)
		}
	}
}

func TestReportLayout(t *testing.T) {
	r := sampleReport()
	b, err := r.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []byte{0x15, 3, 0x12, 0x34, 0xde, 0xad, 0xbe, 0xef, 0xff, 0xff, 0xff, 0xf0, 0, 120, 0, 2, 0, 14, 0x81, 0x82,
		3, 232, 3, 132, 0, 110, 0, 1, 10, 9, 0, 123, 1, 244,
		0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0,
		3, 3, 0, 90, 3, 132,
		3, 2, 0, 0, 255, 255}
	if !bytes.Equal(b, want) {
		t.Errorf("got  %v\nwant %v", b, want)
	}
}

func TestReportErrors(t *testing.T) {
	r := sampleReport()
	valid, err := r.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	changed := func(at int, value byte) []byte {
		b := bytes.Clone(valid)
		b[at] = value
		return b
	}
	for _, test := range []struct {
		name, reason string
		body         []byte
	}{
		{"nothing", "0 bytes", nil},
		{"version", "version is 2", changed(0, 0x25)},
		{"one byte more", "are left for 2 rows", append(bytes.Clone(valid), 0)},
		{"truncated path", "path 7 is truncated", valid[:40]},
		{"empty path", "path 7 is empty", changed(42, 0)},
		{"too many rows", "are left for 3 rows", changed(19, 0x83)},
		{"missed above numbers", "of 120 numbers", changed(14, 1)},
		{"in time above copies", "path 0 has parts", changed(22, 200)},
		{"hellos in time above hellos", "path 0 has parts", changed(29, 11)},
		{"arrived where none left", "arrived on paths 00000100", changed(49, 4)},
		{"short above long", "in the short window", changed(50, 255)},
	} {
		var got Report
		err := got.UnmarshalBinary(test.body)
		if !errors.Is(err, ErrReport) || !strings.Contains(err.Error(), test.reason) {
			t.Errorf("%s: %v, want %q", test.name, err, test.reason)
		}
	}
	often := Report{Sampling: 16}
	if _, err := often.AppendBinary(nil); !errors.Is(err, ErrReport) {
		t.Errorf("sampling %d is encoded: %v", often.Sampling, err)
	}
	many := Report{Rows: make([]Row, MaxReportRows+1)}
	if _, err := many.AppendBinary(nil); !errors.Is(err, ErrReport) {
		t.Errorf("%d rows are encoded: %v", len(many.Rows), err)
	}
}

// FuzzReport checks that any bytes give an error or a report that has these bytes as its encoding.
func FuzzReport(f *testing.F) {
	r := sampleReport()
	valid, err := r.AppendBinary(nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(valid)
	f.Add(valid[:len(valid)-1])
	f.Add(make([]byte, reportHeaderSize))
	f.Fuzz(func(t *testing.T, body []byte) {
		var r Report
		if err := r.UnmarshalBinary(body); err != nil {
			if !errors.Is(err, ErrReport) {
				t.Fatalf("%v does not wrap ErrReport", err)
			}
			return
		}
		again, err := r.AppendBinary(nil)
		if err != nil {
			t.Fatalf("%+v is not encoded: %v", r, err)
		}
		if !bytes.Equal(again, body) {
			t.Fatalf("%x is read as %+v and encoded as %x", body, r, again)
		}
	})
}
