// Package forward is the hot path of the server: from incoming RTP packets to the slots of all receivers.
//
// A Track is one incoming RTP stream. Its packets stand once in a log, in order of arrival, whatever the number of receivers. The goroutine
// that reads a publisher (Ingress.RTP) establishes the facts of each packet, appends it to the log and signals the writers that follow the
// track and sleep. A writer is a goroutine that owns receivers with their slots; it follows each track that any of its slots takes with one
// position in that track's log, asks the switcher of each slot (pkg/switching) what becomes of the packet, and writes it to the slot's outlet.
// The log is the queue: there is none per receiver. A writer that falls behind by more than a log holds loses whole frames; it never makes a
// reader wait, and nothing that one receiver does delays receivers of other writers.
//
// Who owns what: a track's log is appended to under its ingress's mutex, and read by anyone without locks. All that a slot keeps is its
// writer's, but for its mail, which is the writer's inbox's. Control calls are safe for any goroutine, at any time, and do not wait for writers.
package forward
