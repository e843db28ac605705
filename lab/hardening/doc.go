// Package hardening attacks a running server and measures the effect on two participants who do no harm, the innocents.
//
// The server is the real program. It runs as an unprivileged user in its own network namespace, with a send buffer of
// the kernel's default size. The two participants, the attacker and the hosts that an attack needs are in their own
// namespaces, on one bridge with the private addresses 10.8.0.0/16. A check creates the namespaces and removes them.
// Packets of an attack do not leave the namespaces. Every loop of an attack ends at a time or after a count.
//
// Hostile frames are decoded by this program and, in Chromium, by the tests of the source tree.
//
// Checks belong to the goroutine that runs them. Each namespace has a thread, which ends when the namespace is closed.
package hardening
