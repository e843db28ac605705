// Package server assembles a volsfu server. The package starts the parts in the order of their dependencies, and
// stops them in reverse order: media port, data plane, rooms, signalling, operators' listener. A Server is started and
// stopped by one goroutine.
package server
