// Package pacing spreads the packets of frames over time, so that a frame does not arrive at the receiver's link as one burst.
//
// A Mode is the configured text, a Plan what it means. A Schedule says when each packet of one incoming track is due; it is the same for everybody who is sent
// the track. A Pacer decides for one receiver which packets may leave now, and keeps the others, each in the Flow of its outgoing stream, until their tick.
// With an estimate they leave at no more than 2.5 times that, 1.25 times where the queue of the path is full of others' or short, retransmissions first, and frames begin only as far as what has left is within it.
// Where the sender uses little of it they leave as soon as it carries them.
//
// All is pure: no goroutines, no clocks, no locks. Times are since a start that the caller chooses, the same for schedules and pacers, and never go backwards.
// Whoever steps a Schedule or a Pacer owns it.
package pacing
