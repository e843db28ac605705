// Package demand decides which tracks a publisher is asked for.
//
// The slots of all receivers of a room state their needs of a publication (Need). From the counts of those needs and a
// policy follow the tracks that the publisher is asked for; it pauses the rest. This is uplink suppression, which other
// SFUs call dynacast. The publisher is also asked for a share of parity packets, that of the receiver in greatest need.
//
// The package is pure: it has no goroutine, no lock and no clock. The goroutine of a room owns everything in it and
// passes the time to each step.
package demand
