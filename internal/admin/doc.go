// Package admin owns the operators' HTTP listener: metrics, health, readiness and profiles. It listens on loopback unless told otherwise,
// since none of what it serves asks who is there.
//
// A Server owns its listener and the goroutine that serves it.
package admin
