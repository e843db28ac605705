// Package guest is a session of pkg/client for C programs. Received data waits in bounded queues
// that prefer the newest data. The data held by the program is also bounded. Invalid calls are
// rejected before anything is sent.
//
// A Guest has three goroutines that read the session's channels. The goroutines end with the
// session, and the session ends if a goroutine panics. Any goroutine may call the methods.
package guest
