// Package hardening attacks a running server and measures what two participants who do no harm suffer meanwhile.
//
// The server is the real program. It runs as a user without rights in a network namespace of its own, with a send
// buffer of the size that the kernel grants by default. The two participants, the attacker and the hosts that an
// attack needs are in namespaces of their own, on one bridge with the private addresses 10.8.0.0/16. A check makes
// the namespaces and removes them; nothing that an attack sends leaves them. Every loop of an attack ends at a time
// or after a count.
//
// Hostile frames are decoded by this program and, in Chromium, by the tests of the source tree.
//
// Checks belong to the goroutine that runs them. Each namespace has a thread, which ends when the namespace is
// closed.
package hardening
