// Package claims checks the lab's claims about its experiments: every experiment runs and reports completely, and the
// claims of paper 001's experiments hold. A check measures on the goroutine that calls Run.
package claims
