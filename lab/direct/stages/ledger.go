package stages

import (
	"math"
	"time"

	"github.com/volsfu/volsfu/internal/peer/distribution"
)

// maxOpen is the number of frames that wait for the other side's record: more than five seconds at 30 per second, on a
// path with a queue of that length.
const maxOpen = 256

// Ledger joins the records of both sides. Frame numbers increase by one and wrap around.
type Ledger struct {
	open map[uint32]*entry
	// order has the numbers of open entries in order of their creation.
	order  []uint32
	total  Totals
	stages [stageCount]distribution.Distribution
	// off has the deviations of frames from their targets; a ten-thousandth is stored as a microsecond.
	off distribution.Distribution
}

type entry struct {
	record         Record
	sent, received bool
}

// Totals counts frames.
type Totals struct {
	Sent        int64 `json:"frames_sent"`
	Unsent      int64 `json:"frames_unsent"`
	Intact      int64 `json:"frames_intact"`
	Corrupt     int64 `json:"frames_corrupt"`
	Lost        int64 `json:"frames_lost"`
	Unmatched   int64 `json:"frames_unmatched"`
	Decoded     int64 `json:"frames_decoded"`
	Superseded  int64 `json:"frames_superseded"`
	Undecodable int64 `json:"frames_undecodable"`
	Bytes       int64 `json:"bytes"`
	Wire        int64 `json:"wire_bytes"`
	Points      int64 `json:"points"`
	// Targeted frames were bound by the rate. WithinTarget of them were within 5 % of their target.
	Targeted     int64 `json:"frames_targeted"`
	WithinTarget int64 `json:"frames_within_target"`
}

// targetTolerance is the allowed deviation of a frame from its target.
const targetTolerance = 0.05

// NewLedger returns an empty ledger.
func NewLedger() *Ledger { return &Ledger{open: make(map[uint32]*entry)} }

// Sent adds the producer's record of a frame. It returns the joined records that are complete: those with the records
// of both sides, those of frames that were never sent, and the oldest ones if too many are open.
func (l *Ledger) Sent(s *Sent) (done []Record) {
	e, done := l.entry(s.Frame)
	if e.sent {
		return done
	}
	e.record.Sent, e.sent = *s, true
	if e.received || s.Dropped {
		done = append(done, l.close(s.Frame))
	}
	return done
}

// Received adds the consumer's record of a frame, which is final. The result is as for Sent.
func (l *Ledger) Received(r *Received) (done []Record) {
	e, done := l.entry(r.Frame)
	if e.received {
		return done
	}
	e.record.Received, e.received = *r, true
	if e.sent {
		done = append(done, l.close(r.Frame))
	}
	return done
}

// onTheWay is the time for which a frame or the other side's record may be in flight at the end without being counted
// as lost.
const onTheWay = 500 * time.Millisecond

// End closes all open records: frames that were sent and did not arrive are lost, except for those that were in flight.
func (l *Ledger) End(now Instant) (done []Record) {
	for frame, e := range l.open {
		last := e.record.LastSent
		if e.received {
			last = e.record.LastReceived
		}
		if until, known := now.Since(last); !known || until < onTheWay {
			delete(l.open, frame)
		}
	}
	for len(l.order) > 0 {
		done = l.closeOldest(done)
	}
	return done
}

// Waiting reports whether sent frames may still arrive.
func (l *Ledger) Waiting() bool {
	for _, e := range l.open {
		if !e.received {
			return true
		}
	}
	return false
}

// entry returns the entry of a frame. If too many are open, the oldest ones are closed.
func (l *Ledger) entry(frame uint32) (e *entry, done []Record) {
	if e = l.open[frame]; e != nil {
		return e, nil
	}
	for len(l.order) >= maxOpen {
		done = l.closeOldest(done)
	}
	e = &entry{}
	l.open[frame] = e
	l.order = append(l.order, frame)
	return e, done
}

func (l *Ledger) closeOldest(done []Record) []Record {
	frame := l.order[0]
	if l.open[frame] == nil {
		l.order = l.order[1:]
		return done
	}
	return append(done, l.close(frame))
}

// close determines the outcome of a frame and counts it.
func (l *Ledger) close(frame uint32) Record {
	e := l.open[frame]
	delete(l.open, frame)
	for len(l.order) > 0 && l.open[l.order[0]] == nil {
		l.order = l.order[1:]
	}
	r := &e.record
	switch {
	case !e.sent:
		r.Outcome, r.Sent.Frame = Unmatched, r.Received.Frame
		l.total.Unmatched++
	case r.Dropped:
		r.Outcome = Unsent
		l.total.Unsent++
	case !e.received:
		r.Outcome = Lost
		l.total.Lost++
	case r.Hash == r.ReceivedHash:
		r.Outcome = Intact
		l.total.Intact++
	default:
		r.Outcome = Corrupt
		l.total.Corrupt++
	}
	l.count(e)
	l.measure(r)
	return *r
}

func (l *Ledger) count(e *entry) {
	r, t := &e.record, &l.total
	if e.sent && !r.Dropped {
		t.Sent++
		t.Bytes += int64(r.Bytes)
		t.Wire += int64(r.Wire)
		t.Points += int64(r.Points)
		if r.Target > 0 && r.Bound == "rate" {
			off := math.Abs(float64(r.Wire)/float64(r.Target) - 1)
			l.off.Add(time.Duration(off * 1e4 * float64(time.Microsecond)))
			t.Targeted++
			if off <= targetTolerance {
				t.WithinTarget++
			}
		}
	}
	switch {
	case !e.received:
	case r.Undecodable:
		t.Undecodable++
	case r.Superseded:
		t.Superseded++
	case r.Decoded != 0:
		t.Decoded++
	}
}

// stage is the time between two instants of a frame.
type stage struct {
	name       string
	begin, end func(*Record) Instant
}

const stageCount = 14

// table has the stages in order. The first one is the camera's: from the instant of capture to the frame in memory.
var table = [stageCount]stage{
	{"capture", func(r *Record) Instant { return r.Capture }, func(r *Record) Instant { return r.Captured }},
	{"encode_wait", func(r *Record) Instant { return r.Captured }, func(r *Record) Instant { return r.Taken }},
	{"sample", func(r *Record) Instant { return r.Taken }, func(r *Record) Instant { return r.Sampled }},
	{"encode", func(r *Record) Instant { return r.Sampled }, func(r *Record) Instant { return r.Encoded }},
	{"send_wait", func(r *Record) Instant { return r.Encoded }, func(r *Record) Instant { return r.FirstSent }},
	{"send", func(r *Record) Instant { return r.FirstSent }, func(r *Record) Instant { return r.LastSent }},
	{"network", func(r *Record) Instant { return r.LastSent }, func(r *Record) Instant { return r.LastReceived }},
	{"receive", func(r *Record) Instant { return r.FirstReceived }, func(r *Record) Instant { return r.LastReceived }},
	{"reassemble", func(r *Record) Instant { return r.LastReceived }, func(r *Record) Instant { return r.Reassembled }},
	{"decode_wait", func(r *Record) Instant { return r.Reassembled }, func(r *Record) Instant { return r.DecodeBegun }},
	{"decode", func(r *Record) Instant { return r.DecodeBegun }, func(r *Record) Instant { return r.Decoded }},
	{"show", func(r *Record) Instant { return r.Decoded }, func(r *Record) Instant { return r.Shown }},
	{"capture_to_decoded", func(r *Record) Instant { return r.Capture }, func(r *Record) Instant { return r.Decoded }},
	{"capture_to_shown", func(r *Record) Instant { return r.Capture }, func(r *Record) Instant { return r.Shown }},
}

func (l *Ledger) measure(r *Record) {
	for i := range table {
		if took, known := table[i].end(r).Since(table[i].begin(r)); known {
			l.stages[i].Add(took)
		}
	}
}

// Report is the result of a run.
type Report struct {
	Totals
	// Reliability is the fraction of sent frames that arrived intact, 0 to 1; null if no frame was sent.
	Reliability *float64 `json:"reliability"`
	// Stages has the milliseconds of each stage, by name.
	Stages map[string]distribution.Percentiles `json:"stages_ms"`
	// OffTarget is the deviation of frames from their target, in per cent, if the rate determined their size.
	OffTarget distribution.Percentiles `json:"off_target_percent"`
}

// Report returns the statistics.
func (l *Ledger) Report() Report {
	r := Report{Totals: l.total, Stages: make(map[string]distribution.Percentiles)}
	if l.total.Sent > 0 {
		part := math.Round(float64(l.total.Intact)/float64(l.total.Sent)*1e6) / 1e6
		r.Reliability = &part
	}
	for i := range table {
		r.Stages[table[i].name] = l.stages[i].Percentiles()
	}
	// A ten-thousandth is stored as a microsecond, so that the value in milliseconds is in tenths.
	r.OffTarget = l.off.Percentiles()
	for _, v := range []*float64{r.OffTarget.P50, r.OffTarget.P95, r.OffTarget.P99, r.OffTarget.Max} {
		if v != nil {
			*v = math.Round(*v*1e4) / 1e3
		}
	}
	return r
}
