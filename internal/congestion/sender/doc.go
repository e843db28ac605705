// Package sender is the sending side of congestion control towards one receiver.
//
// A Sender joins the parts of each direction of media: the History of sent packets, the estimator that processes the
// receiver's reports, the probes that the estimator requests, and the pacer that queues packets until they may leave.
// The server has one Sender for each receiver, pkg/client one for its uplink, direct mode one for its stream, and
// vollab control runs the server's Sender in virtual time.
//
// The caller numbers and writes packets. It calls Sent and Spend for each packet that leaves, Report for each report,
// Consult after reports, Step at StepDue, and begins ticks of the pacer at Next (pacing.Pacer). The package is pure: no
// goroutines, no clocks, no locks. The caller's goroutine owns the Sender.
package sender
