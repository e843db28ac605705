// Package webhook posts the events of rooms to the endpoints of an operator's backend, signed and in the order of each
// room. docs/api.md describes the deliveries.
//
// A queue decides the order and the times of deliveries, and is stepped with the time. A Sender owns one goroutine per
// endpoint, which starts one goroutine per request. Sender.RoomEvent never waits for an endpoint: an endpoint that is
// slow or down costs a bounded queue, and events beyond the queue or too old are dropped and counted.
package webhook
