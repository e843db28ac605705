package feedback

const (
	// lossReports is the number of reports in the window: four seconds at one per second. At 600 packets per second and
	// 5 % of loss, 120 ± 11 packets are lost in four seconds, so that chance changes the share of parity by a step or
	// two.
	lossReports = 4
	// minLossPackets is the number of packets needed for a loss ratio: of fewer packets, a single lost one is more than
	// 2 %.
	minLossPackets = 50
)

// Loss is the loss ratio of one path over the last reports. The zero value is ready for use.
type Loss struct {
	reports [lossReports]lossReport
	count   int
}

// lossReport counts the packets between two reports.
type lossReport struct{ expected, lost int64 }

// Add adds the number of packets expected since the last call, and the number of them that did not arrive. lost is
// negative if more packets arrived late that had been counted as lost. Nothing changes while no packet is expected.
func (l *Loss) Add(expected, lost int64) {
	if expected <= 0 {
		return
	}
	l.reports[l.count%lossReports] = lossReport{expected, lost}
	l.count++
}

// Share returns the loss ratio, 0 to 1, or 0 if too few packets were sent.
func (l *Loss) Share() float64 {
	var expected, lost int64
	for _, r := range l.reports {
		expected, lost = expected+r.expected, lost+r.lost
	}
	if expected < minLossPackets {
		return 0
	}
	return min(max(float64(lost)/float64(expected), 0), 1)
}
