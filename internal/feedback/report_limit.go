package feedback

import "time"

// MaxReportRate is the number of reports of arrivals per second that are read from one peer. A receiver of 1 Gbit/s in
// packets of 1,200 bytes makes 193 full reports per second, and at most 250 about marks.
const MaxReportRate = 1000

// ReportLimit limits the reports of arrivals that are read from one peer to MaxReportRate in each second of the
// system's clock. The zero value is ready to use. Its owner serialises all calls.
type ReportLimit struct {
	second, read uint32
}

// Take reports whether a report that arrives now may be read.
func (l *ReportLimit) Take(now time.Time) bool {
	if second := uint32(now.Unix()); second != l.second {
		l.second, l.read = second, 0
	}
	l.read = min(l.read+1, MaxReportRate+1)
	return l.read <= MaxReportRate
}
