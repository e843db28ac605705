package redundancy

import "time"

const (
	// reportInterval is the time between two reports while packets arrive. A report takes 48 bytes, 62 with SRTCP, and
	// 110 with IPv6 and UDP. It leaves on both paths: 2 × 110 × 8 / 50 ms = 35 kbit/s.
	reportInterval = 50 * time.Millisecond
	// silence is the time without an arrival on one path, while packets arrive on another, after which reports are made
	// every fastInterval, for silentReports at most. Audio has a packet every 20 ms, and video at 30 Hz a frame every
	// 33 ms, of which the packets are spread over a third of the interval or more.
	silence       = 25 * time.Millisecond
	fastInterval  = 20 * time.Millisecond
	silentReports = 2 * time.Second
)

// Recorder records the arrivals of packets on the paths of one peer connection, for reports to the sender. The owner
// makes a Recorder when the first packet arrives on a second path.
type Recorder struct {
	ssrc  uint32
	epoch time.Time
	paths [Paths]arrivals
	// reported is the time of the last report. due is the time of the next one, zero if nothing has arrived since.
	reported, due time.Time
}

// arrivals are the arrivals on one path.
type arrivals struct {
	newest PathReport
	at     time.Time
}

// NewRecorder returns a Recorder whose reports have the given SSRC. epoch is the origin of the reported times.
func NewRecorder(ssrc uint32, epoch time.Time) *Recorder { return &Recorder{ssrc: ssrc, epoch: epoch} }

// Arrived records a packet that arrived on a path, whether or not another path has delivered the packet before.
// Arrivals on other paths than the first Paths are ignored, and so is the second of two packets that left on one path
// (Packet.Doubled): Arrived then reports false.
func (r *Recorder) Arrived(path uint8, ssrc uint32, sequence uint16, at time.Time) bool {
	if path >= Paths {
		return false
	}
	p, other := &r.paths[path], &r.paths[Paths-1-path]
	if p.newest.Known && p.newest.SSRC == ssrc && p.newest.Sequence == sequence {
		return false
	}
	interval := reportInterval
	if p.newest.Known && at.Sub(p.at) >= silence {
		interval = fastInterval
	}
	if gap := at.Sub(other.at); other.newest.Known && gap >= silence && gap < silentReports {
		interval = fastInterval
	}
	p.at = at
	p.newest = PathReport{
		Known: true, SSRC: ssrc, Sequence: sequence, Arrived: r.micros(at), Packets: p.newest.Packets + 1,
	}
	if due := r.reported.Add(interval); r.due.IsZero() || due.Before(r.due) {
		r.due = due
		if r.due.Before(at) {
			r.due = at
		}
	}
	return true
}

// micros converts a time to µs modulo 2^32.
func (r *Recorder) micros(t time.Time) uint32 { return uint32(t.Sub(r.epoch).Microseconds()) }

// Next returns the time of the next report, or the zero time if nothing has arrived since the last one.
func (r *Recorder) Next() time.Time { return r.due }

// AppendReport appends a report as an RTCP packet, if a report is due.
func (r *Recorder) AppendReport(dst []byte, now time.Time) []byte {
	if r.due.IsZero() || now.Before(r.due) {
		return dst
	}
	r.reported, r.due = now, time.Time{}
	report := Report{Sender: r.ssrc, Time: r.micros(now)}
	for i := range r.paths {
		report.Paths[i] = r.paths[i].newest
	}
	return report.Append(dst)
}
