// Package pacing spreads the packets of frames over time, so that a frame does not reach the receiver's link as one
// burst.
//
// A Mode is the configured text, a Plan its meaning. A Schedule computes when each packet of one incoming track is due;
// it is shared by all receivers of the track. A Pacer decides for one receiver which packets may leave now, and queues
// the others until their tick, each in the Flow of its outgoing stream. With an estimate, packets leave at no more than
// 2.5 times the estimate, or 1.25 times if cross traffic keeps the queue of the path full or the queue is short.
// Retransmissions leave first. A frame begins only if the bytes already sent are within the estimate. If the sender
// uses little of the estimate, packets leave as soon as the estimate permits.
//
// On a smooth path (Path.Smooth), due times have no effect. The frame that began first leaves first, at 1.05 times the
// estimate in ticks of 0.5 ms, and at the estimate itself once a path with that rate would have a queue of 1 ms. If the
// path is spaced as well (Path.Spaced), packets leave one by one, at 0.97 times the estimate. With a window
// (Path.Window), a frame begins only if it fits into the window beside the bytes in flight.
//
// The package is pure: no goroutines, no clocks, no locks. Times are durations since a start that the caller chooses,
// the same for schedules and pacers, and never decrease. The goroutine that steps a Schedule or a Pacer owns it.
package pacing
