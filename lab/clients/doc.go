// Package clients checks that every client decodes every stream, and that the clients run on the systems of their users
// (vollab check clients).
//
// A measurement belongs to the goroutine that calls Run.
package clients
