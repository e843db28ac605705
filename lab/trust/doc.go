// Package trust checks the claims of reach and trust (vollab check trust): joins from any network, keys and content
// that the server never has, rooms, recordings, and clients that misbehave.
//
// A claim consists of measurements. A claim without a measurement is skipped. Most measurements need Linux and root,
// and use network namespaces of their own, which they remove; elsewhere they are skipped with the reason.
//
// A measurement belongs to the goroutine that calls Run.
package trust
