// Package claims checks what the laboratory claims of its experiments: that every one of them runs and tells all of it, and what follows from those of paper 001.
// A check measures on the goroutine that calls Run.
package claims
