// Package forward is the data path of the server, from publishers to the slots of all receivers. The Engine connects
// the parts:
//
//	ingress    receives the packets of a publisher, classifies them, requests lost packets
//	injection  makes packets of frames that arrive over a data channel
//	track      one incoming RTP stream, shared by ingress and egress
//	packetlog  the packets of a track, each once, in order of arrival, for any number of receivers
//	turn       runs a sleeping writer on the goroutine that delivers packets
//	egress     follows tracks, selects packets for each slot, paces, sends and retransmits
//	frames     sends the frames of a slot over a transport other than RTP
//	trace      times of frames on the way through the server
//	counters   counters of the data path
//
// The log is the queue. A packet that an outlet has queued waits for the rest of its burst, not for its receiver. A
// writer that falls behind by more than a log holds loses whole frames. A writer never delays a reader for longer than
// the turn allows, and no receiver delays the receivers of other writers.
//
// A reader appends to a track's log with the mutex of its ingress held. Any goroutine reads a log without locks. The
// state of a slot belongs to the goroutine that has the turn of the slot's writer. Control calls are safe for any
// goroutine at any time and do not wait for writers.
package forward
