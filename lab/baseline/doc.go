// Package baseline contains volsfu and the transports with which volsfu is compared, as ends of package carriage's
// client. Open opens the end of a Config. Each transport has a package below this one, with its protocol as pure code
// and the sockets around it. docs/baselines.md lists the original and the omissions of each transport.
package baseline
