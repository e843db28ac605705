// Package forward is the path of packets through the server, from publishers to the slots of all receivers. The Engine
// joins its parts:
//
//	ingress    takes the packets of a publisher, establishes what they are, asks for what is missing
//	track      one incoming RTP stream, as ingress and egress share it
//	packetlog  the packets of a track, each once, in order of arrival, whatever the number of receivers
//	turn       lets the goroutine that brings packets do the work of a writer that sleeps
//	egress     follows tracks, decides for each slot, paces, sends, sends again
//	frames     sends the frames of a slot by another transport than RTP
//	trace      the times that frames take
//	counters   what is counted on the way
//
// The log is the queue: what an outlet has queued waits for the rest of its burst, not for its receiver. A writer that
// falls behind by more than a log holds loses whole frames. It never makes a reader wait for longer than the turn
// allows, and nothing that one receiver does delays receivers of other writers.
//
// A reader appends to a track's log with the mutex of its ingress held. Any goroutine reads a log without locks. What a
// slot keeps belongs to the goroutine that has the turn of the slot's writer. Control calls are safe for any goroutine,
// at any time, and do not wait for writers.
package forward
