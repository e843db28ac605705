// Package feedback implements the feedback between the two ends of an RTP stream: sequence numbers and their
// unwrapping, losses and requests for retransmission (NACK), the share of parity, retransmissions (RTX) and the history
// of sent packets, sender and receiver reports, round-trip times, the mapping between RTP timestamps, capture times and
// clocks, and the arrival times of the packets of a transport for congestion control, by transport-wide feedback or by
// RFC 8888. Server and clients share it.
//
// The package is pure: values are stepped with an explicit now and return the actions to take. There are no goroutines,
// locks or clocks; every value belongs to the goroutine that steps it.
package feedback
