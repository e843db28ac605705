// Package fanout is a server to compare with: the least that forwards RTP from publishers to receivers on Pion's own
// media path, with Pion's default interceptors, as most forwarding units on Pion begin. It has one room, and answers an
// offer in one HTTP request.
//
// A Server is safe for concurrent use. One goroutine per incoming track forwards it to all receivers; a track's
// receivers are those that joined after the track began.
package fanout
