// Package baseline has the transports that volsfu is compared with, and volsfu itself, as ends of package carriage's client: Open makes any of them
// of its Config. Each has a package below this one, with its protocol as pure code and the sockets around it. docs/baselines.md says what each stands
// for and what was left out.
package baseline
