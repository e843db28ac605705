package frametimes

import (
	"time"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Source is where a host has its time from.
type Source string

// The sources of time.
const (
	// SourceEstimated: the offset from the reference is estimated by round trips (package clock).
	SourceEstimated Source = "estimated"
	// SourceSystem: the system's clock is taken for right, as on the server's own host or where NTP keeps it.
	SourceSystem Source = "system"
	// SourcePTP: the system's clock is kept by the precision time protocol (IEEE 1588).
	SourcePTP Source = "ptp"
)

// Valid tells whether there is such a source.
func (s Source) Valid() bool {
	return s == SourceEstimated || s == SourceSystem || s == SourcePTP
}

// Clock says how the times of one host were turned into the reference's.
type Clock struct {
	// Source is empty where the host took no part.
	Source Source
	// Offset was added to the host's own times.
	Offset time.Duration
	// Bound is how far the result may be off at most, whatever the path: half of the quickest round trip where the offset is estimated.
	Bound time.Duration
	// Uncertainty is how far it may be off if the path takes equally long in both directions.
	Uncertainty time.Duration
	// Disagreement is the offset that the estimate, which goes on as a check, finds for a clock that is taken for right; 0 where it confirms that clock within
	// its bound, or where there is no estimate.
	Disagreement time.Duration
}

// Record is what is known of one tile frame on its way to one receiver.
type Record struct {
	// Track names publication, tile and quality.
	Track volumetric.TrackRef
	// Receiver is whose the frame was, empty in the records of senders.
	Receiver string
	// Frame is the frame number, and Bytes the length of the encoded tile.
	Frame int64
	Bytes int
	// Times are the stamps by the reference clock, in nanoseconds since 1970, 0 where not known.
	Times [Stamps]int64
	// Clocks are those of the hosts, by Host.
	Clocks [Hosts]Clock
}

// Has tells whether a stamp is known.
func (r *Record) Has(s Stamp) bool { return r.Times[s] != 0 }

// Time is a stamp, the zero time where it is not known.
func (r *Record) Time(s Stamp) time.Time {
	if r.Times[s] == 0 {
		return time.Time{}
	}
	return time.Unix(0, r.Times[s])
}

// Set notes a stamp by the reference clock. The zero time changes nothing.
func (r *Record) Set(s Stamp, t time.Time) {
	if !t.IsZero() {
		r.Times[s] = t.UnixNano()
	}
}

// SetLocal notes a stamp by the clock of the host that takes it, whose Clock must be set before.
func (r *Record) SetLocal(s Stamp, t time.Time) {
	if !t.IsZero() {
		r.Times[s] = t.UnixNano() + int64(r.Clocks[s.Host()].Offset)
	}
}

// Local is a stamp by the clock of the host that took it, the zero time where it is not known.
func (r *Record) Local(s Stamp) time.Time {
	if r.Times[s] == 0 {
		return time.Time{}
	}
	return time.Unix(0, r.Times[s]-int64(r.Clocks[s.Host()].Offset))
}

// Merge adds the stamps and clocks that another record of the same frame knows and this one does not.
func (r *Record) Merge(other *Record) {
	for i, t := range other.Times {
		if r.Times[i] == 0 {
			r.Times[i] = t
		}
	}
	for i, c := range other.Clocks {
		if r.Clocks[i].Source == "" {
			r.Clocks[i] = c
		}
	}
	if r.Bytes == 0 {
		r.Bytes = other.Bytes
	}
	if r.Receiver == "" {
		r.Receiver = other.Receiver
	}
}
