// Package trunk connects two nodes of a cluster. A trunk has one to four lanes (transport.Lane), each with DTLS, SRTP
// and an estimator of its own, and one SCTP association on the first lane for control messages.
//
// The node that a publisher is connected to is the origin of its tracks, the other is the taking node. The taking node
// sends its whole demand for a publication (take). The origin answers with the streams that carry the tracks (offer),
// and sends packets once the taking node has bound them (bound). Each track has a slot of its own, so that timestamps,
// frame numbers and payload cross unchanged. Packets that are lost on the trunk are requested from the origin, never
// from the publisher. If many nodes take a publication, its home assigns parents to them, which pass the publication on
// (parent).
//
// The parts without goroutines and clocks:
//
//	message    the control messages
//	origin     demand of the other node -> streams, and the tracks that they carry
//	taking     offers of the other node -> streams to bind, and the packets that were not taken
//	fit        the tracks that an estimate carries
//	tree       at the home: the parent of each node that takes a publication
//	feed       at another node: the nodes from which the node takes a publication
//	silence    the time since the last packet of the other node
//	updates    the states that have to be sent to the other node
//	hops       the times of frames in the nodes that pass them on
//
// A link is the trunk to one node. Its lanes have the slots that send and the streams that receive. bindings bind
// streams to tracks, masking masks tracks that do not fit, outbox has the messages that wait, and tracing sends hops.
//
// Host is the shell. One goroutine calls a Host. Goroutines of sockets and of SCTP pass arrivals to the Host, which
// handles them in Step.
package trunk
