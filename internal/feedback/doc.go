// Package feedback holds what the two ends of an RTP stream tell each other about it: sequence numbers unwrapped, losses and requests to repeat
// them (NACK), how much parity makes up for them, retransmissions (RTX) and the packets kept for them, sender and receiver reports, round-trip times, the
// mapping between RTP timestamps, capture times and clocks, and when the packets of a transport arrived, for congestion control: by transport-wide feedback
// or by RFC 8888. Server and clients share it.
//
// Everything here is pure: values that are stepped with an explicit now and return what to do. There are no goroutines, no locks and no clocks; every
// value belongs to the goroutine that steps it.
package feedback
