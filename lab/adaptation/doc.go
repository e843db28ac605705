// Package adaptation measures the claims about suppression: the traffic that publishers save, and the delay for a
// receiver that then requests a suppressed quality. Package adaptation also measures the share of adaptation in a
// server's processor time. Each check is a type, which measures on the goroutine that calls Run.
package adaptation
