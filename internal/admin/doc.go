// Package admin owns what is for operators: the HTTP listener with metrics, health, readiness and profiles, which asks nobody who is there and therefore listens on
// loopback unless told otherwise, and the interface (API) that tells what goes on in rooms and does something about it, which stands on the clients' listener, too, for
// tokens with the admin grant.
//
// A Server owns its listener and the goroutine that serves it. An API keeps no state; each stream of events lives in the goroutine of its request.
package admin
