// Package claims checks the lab's claims about its experiments: every experiment runs and reports completely, and the
// claims that follow from the experiments of paper 001. A check measures on the goroutine that calls Run.
package claims
