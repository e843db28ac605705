// Package guest is a session of pkg/client for C programs: received data waits in bounded queues
// that prefer the newest, the data held by the program is bounded, too, and invalid calls are
// rejected before they reach the network.
//
// A Guest has three goroutines that read the session's channels. They end with the session, and the
// session ends if one of them panics. Any goroutine may call its methods.
package guest
