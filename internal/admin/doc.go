// Package admin has the interfaces for operators: the HTTP listener with metrics, health, readiness and profiles, which
// needs no token and therefore listens on loopback by default, and the API for the state of rooms and actions on them,
// which is also on the clients' listener, for tokens with the admin grant.
//
// A Server owns its listener and the goroutine that serves it. An API keeps no state; each stream of events runs in the
// goroutine of its request.
package admin
