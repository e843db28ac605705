// Package subscriber decides which qualities one receiver gets.
//
// A Subscriber has the receiver's slots, choices and viewpoint, and the estimate of its link. A Publication is a view
// of a publication: its description, its place, and the rates of its tracks. The Subscriber describes its slots as an
// allocator's scene, runs the allocator to turn the budget into qualities, applies the qualities to the slots, and
// returns messages for the client.
//
// The package is pure: it has no goroutine, no lock and no clock. The goroutine of a room owns all values of the
// package and passes the time to each step. The package uses two interfaces of the data plane: the path of a receiver
// (Link) and the output of a slot (Output). The methods do not wait.
package subscriber
