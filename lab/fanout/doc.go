// Package fanout is a server for comparisons: the minimal code that forwards RTP from publishers to receivers on Pion's
// own media path, with Pion's default interceptors, which is the usual beginning of an SFU on Pion. The server has one
// room, and answers an offer in one HTTP request.
//
// A Server is safe for concurrent use. One goroutine per incoming track forwards the track to all receivers. A track's
// receivers are the receivers that joined after the track began.
package fanout
