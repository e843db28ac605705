// Package demand decides which tracks a publisher is asked for.
//
// The slots of all receivers of a room state their needs for a publication (Need). The counts of the needs and a policy
// determine the tracks that the publisher is asked for; the publisher pauses all other tracks. This is uplink
// suppression, which other SFUs call dynacast. The publisher is also asked for a share of parity packets: the largest
// share that a receiver needs.
//
// The package is pure: it has no goroutine, no lock and no clock. The goroutine of a room owns all values of the
// package and passes the time to each step.
package demand
