// Package adaptation measures the claims about suppression: the traffic that publishers save, and the delay for a
// receiver that then requests a suppressed quality. It also measures the share of adapting in a server's processor
// time. Each check is a type of its own; each measures on the goroutine that calls Run.
package adaptation
