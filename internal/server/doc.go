// Package server puts the parts of a volsfu server together, in the order in which they depend on each other, and ends them in the other
// order: media port, data plane, rooms, signalling, operators' listener. A Server is started and stopped by one goroutine.
package server
