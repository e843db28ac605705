package frametimes

import (
	"time"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Source identifies the source of a host's time.
type Source string

// The sources of time.
const (
	// SourceEstimated: the offset from the reference clock is estimated from round trips (package
	// clock).
	SourceEstimated Source = "estimated"
	// SourceSystem: the system's clock is assumed to be correct, as on the server's own host or
	// with NTP.
	SourceSystem Source = "system"
	// SourcePTP: the system's clock is synchronized by the precision time protocol (IEEE 1588).
	SourcePTP Source = "ptp"
)

// Valid reports whether s is one of the sources above.
func (s Source) Valid() bool {
	return s == SourceEstimated || s == SourceSystem || s == SourcePTP
}

// Clock describes the conversion of one host's times to the reference clock.
type Clock struct {
	// Source is empty if the host took no stamps.
	Source Source
	// Offset was added to the host's times.
	Offset time.Duration
	// Bound is the maximum error for any network path: half of the quickest round trip if the
	// offset is estimated.
	Bound time.Duration
	// Uncertainty is the maximum error if both directions of the path have the same delay.
	Uncertainty time.Duration
	// Disagreement is the estimated offset of a clock that is assumed to be correct. The estimate
	// continues as a check. Disagreement is 0 if the estimate confirms the clock within its bound,
	// or if there is no estimate.
	Disagreement time.Duration
}

// Record contains the stamps of one tile frame on its way to one receiver.
type Record struct {
	// Track identifies publication, tile and quality.
	Track volumetric.TrackRef
	// Receiver is the identity of the receiver. Receiver is empty in the records of senders.
	Receiver string
	// Frame is the frame number. Bytes is the size of the encoded tile.
	Frame int64
	Bytes int
	// Times contains the stamps by the reference clock, in nanoseconds since 1970, 0 if unknown.
	Times [Stamps]int64
	// Clocks contains the clock of each host, indexed by Host.
	Clocks [Hosts]Clock
}

// Has reports whether a stamp is known.
func (r *Record) Has(s Stamp) bool { return r.Times[s] != 0 }

// Time returns a stamp, or the zero time if it is unknown.
func (r *Record) Time(s Stamp) time.Time {
	if r.Times[s] == 0 {
		return time.Time{}
	}
	return time.Unix(0, r.Times[s])
}

// Set stores a stamp by the reference clock. The zero time changes nothing.
func (r *Record) Set(s Stamp, t time.Time) {
	if !t.IsZero() {
		r.Times[s] = t.UnixNano()
	}
}

// SetLocal stores a stamp by the clock of the host that takes it. The host's Clock must be set
// before.
func (r *Record) SetLocal(s Stamp, t time.Time) {
	if !t.IsZero() {
		r.Times[s] = t.UnixNano() + int64(r.Clocks[s.Host()].Offset)
	}
}

// Local returns a stamp by the clock of the host that took it, or the zero time if it is unknown.
func (r *Record) Local(s Stamp) time.Time {
	if r.Times[s] == 0 {
		return time.Time{}
	}
	return time.Unix(0, r.Times[s]-int64(r.Clocks[s.Host()].Offset))
}

// Merge copies the stamps and clocks of another record of the same frame that are unknown in r.
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
