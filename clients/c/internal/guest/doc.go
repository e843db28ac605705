// Package guest is a session of pkg/client as a C program needs it: what arrives waits in bounded queues, where the newest counts; what the program holds
// is bounded, too; and what is wrong with a call is said before it reaches the network.
//
// A Guest has three goroutines that empty the session's channels; they end with the session, which ends if one of them
// panics. Any goroutine may call its methods.
package guest
