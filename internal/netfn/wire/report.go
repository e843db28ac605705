package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"
)

// Report is the body of a report message: what the receiver of a pair observed of one rule's packets. A report states
// counts over the windows that end with the report, not increments, so that lost and reordered reports do no harm. The
// long window is 1 s and the short window is 100 ms.
//
// Counts are of sampled numbers.
type Report struct {
	Rule   uint8  // index of the rule at the sender
	Epoch  uint16 // epoch of the packets
	Serial uint32 // grows by 1 per report; a receiver of reports drops those that are not newer

	Sampling uint8 // of each flow's numbers, every 2^Sampling-th is counted; at most 15

	Seen   bool   // a packet of the epoch has arrived, and Newest is valid
	Newest uint32 // greatest send time of the packets that have arrived, in µs of the sender's clock modulo 2^32

	Numbers uint16 // numbers judged in the short window
	Missed  uint16 // of these, numbers of which no copy was in time
	Slow    uint16 // numbers in the short window whose first copy exceeded the usual delay by half the deadline

	Paths [MaxPaths]PathReport // by path; the zero value for a path without copies and hellos
	Rows  []Row                // at most MaxReportRows
}

// PathReport has the counts of one path over the long window.
type PathReport struct {
	Copies      uint16 // numbers that left on the path, probes included
	InTime      uint16 // of these, copies in time
	Slow        uint16 // copies that exceeded the path's own least delay by half the deadline, or did not arrive
	Lost        uint16 // copies that did not arrive within 200 ms after the deadline
	Beats       uint8  // hellos that arrived
	BeatsInTime uint8  // of these, hellos in time
	Delay       uint16 // mean delay above the least delay of all paths, in units of 100 µs, of copies and hellos
	Spread      uint16 // greatest less least delay, in units of 100 µs
}

// Row counts the numbers that left on the same set of paths and arrived in time on the same set of paths.
type Row struct {
	Sent   uint8  // bit i: a copy left on path i
	InTime uint8  // bit i: that copy was in time; a subset of Sent
	Short  uint16 // numbers in the short window
	Long   uint16 // numbers in the long window, which contains the short one
}

// The layout of a report is fixed:
//
//	byte   field
//	0      bits 4–7: version, 1; bits 0–3: sampling
//	1      rule
//	2–3    epoch
//	4–7    serial
//	8–11   newest
//	12–13  numbers
//	14–15  missed
//	16–17  slow
//	18     bit i: an entry of path i follows
//	19     bits 0–5: number of rows, bit 7: seen
//	20     entries of paths, 14 bytes each, then rows, 6 bytes each
const (
	reportVersion    = 1
	maxSampling      = 15
	reportHeaderSize = 20
	pathReportSize   = 14
	rowSize          = 6
	seenBit          = 0x80

	// MaxReportRows bounds the rows. With three paths in the set there are 8 outcomes, and as many again for probes.
	MaxReportRows = 48

	// MaxReportSize is the greatest size of a report in bytes: 420, far below any MTU.
	MaxReportSize = reportHeaderSize + MaxPaths*pathReportSize + MaxReportRows*rowSize
)

// ReportLifetime is the time after which a report says nothing of the present. Without a newer report the sender
// returns to plain packets, and any serial is newer.
const ReportLifetime = time.Second

// ErrReport is wrapped by the errors about reports that contradict themselves or their layout.
var ErrReport = errors.New("invalid report")

// Newer reports whether the report is newer than the one with a serial, in serial number arithmetic (RFC 1982).
func (r *Report) Newer(serial uint32) bool { return int32(r.Serial-serial) > 0 }

// AppendBinary appends the encoding of the report. The error is that of a report which no Observer returns.
func (r *Report) AppendBinary(b []byte) ([]byte, error) {
	if err := r.validate(); err != nil {
		return b, err
	}
	var present uint8
	for i := range r.Paths {
		if r.Paths[i] != (PathReport{}) {
			present |= 1 << i
		}
	}
	rows := uint8(len(r.Rows))
	if r.Seen {
		rows |= seenBit
	}
	b = append(b, reportVersion<<4|r.Sampling, r.Rule)
	b = binary.BigEndian.AppendUint16(b, r.Epoch)
	b = binary.BigEndian.AppendUint32(b, r.Serial)
	b = binary.BigEndian.AppendUint32(b, r.Newest)
	b = binary.BigEndian.AppendUint16(b, r.Numbers)
	b = binary.BigEndian.AppendUint16(b, r.Missed)
	b = binary.BigEndian.AppendUint16(b, r.Slow)
	b = append(b, present, rows)
	for i := range r.Paths {
		if present&(1<<i) != 0 {
			b = r.Paths[i].append(b)
		}
	}
	for _, row := range r.Rows {
		b = append(b, row.Sent, row.InTime)
		b = binary.BigEndian.AppendUint16(b, row.Short)
		b = binary.BigEndian.AppendUint16(b, row.Long)
	}
	return b, nil
}

func (p *PathReport) append(b []byte) []byte {
	b = binary.BigEndian.AppendUint16(b, p.Copies)
	b = binary.BigEndian.AppendUint16(b, p.InTime)
	b = binary.BigEndian.AppendUint16(b, p.Slow)
	b = binary.BigEndian.AppendUint16(b, p.Lost)
	b = append(b, p.Beats, p.BeatsInTime)
	b = binary.BigEndian.AppendUint16(b, p.Delay)
	return binary.BigEndian.AppendUint16(b, p.Spread)
}

// UnmarshalBinary replaces the report by the encoded one. The rows reuse the report's memory. After an error, which
// wraps ErrReport, the report's content is undefined.
func (r *Report) UnmarshalBinary(b []byte) error {
	if len(b) < reportHeaderSize {
		return fmt.Errorf("%w: %d bytes are fewer than the %d bytes of its header", ErrReport, len(b), reportHeaderSize)
	}
	if version := b[0] >> 4; version != reportVersion {
		return fmt.Errorf("%w: its version is %d and not %d", ErrReport, version, reportVersion)
	}
	*r = Report{
		Sampling: b[0] & maxSampling, Rule: b[1], Epoch: binary.BigEndian.Uint16(b[2:]),
		Serial: binary.BigEndian.Uint32(b[4:]), Newest: binary.BigEndian.Uint32(b[8:]),
		Numbers: binary.BigEndian.Uint16(b[12:]),
		Missed:  binary.BigEndian.Uint16(b[14:]), Slow: binary.BigEndian.Uint16(b[16:]), Seen: b[19]&seenBit != 0,
		Rows: r.Rows[:0],
	}
	present, rows := b[18], int(b[19]&^seenBit)
	b = b[reportHeaderSize:]
	for i := range r.Paths {
		if present&(1<<i) == 0 {
			continue
		}
		if len(b) < pathReportSize {
			return fmt.Errorf("%w: its entry of path %d is truncated", ErrReport, i)
		}
		r.Paths[i] = parsePathReport(b)
		if r.Paths[i] == (PathReport{}) {
			return fmt.Errorf("%w: its entry of path %d is empty", ErrReport, i)
		}
		b = b[pathReportSize:]
	}
	if len(b) != rows*rowSize {
		return fmt.Errorf("%w: %d bytes are left for %d rows of %d bytes", ErrReport, len(b), rows, rowSize)
	}
	for ; len(b) > 0; b = b[rowSize:] {
		r.Rows = append(r.Rows, Row{Sent: b[0], InTime: b[1], Short: binary.BigEndian.Uint16(b[2:]),
			Long: binary.BigEndian.Uint16(b[4:])})
	}
	return r.validate()
}

func parsePathReport(b []byte) PathReport {
	return PathReport{
		Copies: binary.BigEndian.Uint16(b), InTime: binary.BigEndian.Uint16(b[2:]),
		Slow: binary.BigEndian.Uint16(b[4:]), Lost: binary.BigEndian.Uint16(b[6:]), Beats: b[8], BeatsInTime: b[9],
		Delay: binary.BigEndian.Uint16(b[10:]), Spread: binary.BigEndian.Uint16(b[12:]),
	}
}

// validate returns the first contradiction within the report.
func (r *Report) validate() error {
	if len(r.Rows) > MaxReportRows {
		return fmt.Errorf("%w: %d rows are more than %d", ErrReport, len(r.Rows), MaxReportRows)
	}
	if r.Sampling > maxSampling {
		return fmt.Errorf("%w: its sampling is %d, the limit is %d", ErrReport, r.Sampling, maxSampling)
	}
	if r.Missed > r.Numbers {
		return fmt.Errorf("%w: %d of %d numbers are missed", ErrReport, r.Missed, r.Numbers)
	}
	for i, p := range r.Paths {
		if max(p.InTime, p.Slow, p.Lost) > p.Copies || p.BeatsInTime > p.Beats {
			return fmt.Errorf("%w: path %d has parts that exceed its %d copies and %d hellos", ErrReport, i, p.Copies,
				p.Beats)
		}
	}
	for _, row := range r.Rows {
		if row.Sent == 0 || row.InTime&^row.Sent != 0 {
			return fmt.Errorf("%w: copies left on paths %08b and arrived on paths %08b", ErrReport, row.Sent,
				row.InTime)
		}
		if row.Short > row.Long {
			return fmt.Errorf("%w: a row has %d numbers in the short window and %d in the long one", ErrReport,
				row.Short, row.Long)
		}
	}
	return nil
}
