// Package sender is the sending side of congestion control towards one receiver.
//
// A Sender joins the parts that each direction of media needs: the History of what was sent, the estimator that learns
// from the receiver's reports, the probes that the estimator asks for, and the pacer that keeps packets until they may
// leave. The server has one for each receiver, direct mode has one for its stream, and vollab control runs the server's
// in virtual time. The uplink of pkg/client still has its own parts.
//
// The caller numbers and writes packets. It tells the Sender of each packet that leaves (Sent, Spend), brings it
// reports (Report), consults it after reports (Consult), steps it when StepDue has come (Step), and begins ticks of the
// pacer when Next has come (pacing.Pacer). All is pure: no goroutines, no clocks, no locks. The caller's goroutine owns
// the Sender.
package sender
