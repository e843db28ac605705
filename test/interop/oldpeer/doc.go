// Package oldpeer behaves as the Go peer and the native connector that VR2Gather ships, as far as a server can tell: it joins by the old websocket, answers
// offers, publishes tiles × qualities and audio, receives by fixed offsets and completes frames by counting bytes. Where the original would panic, exit or
// show a broken frame, this one notes a Fault, so that a test can put it in front of a server and say what was wrong with what that sent.
//
// It stands on plain Pion and shares no code with the server that it tests; what the original reads at fixed offsets is read at fixed offsets here.
//
// A Peer has one goroutine that reads the websocket, one that acts on its messages, and one per received track; the counts are behind locks of their own.
package oldpeer
