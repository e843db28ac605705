// Package puppet is a client for tests that sends what the test specifies, valid or not: any data on the websocket, in
// a session description, or in encrypted RTP and RTCP. By default the client behaves correctly: it answers offers,
// acknowledges assignments and exchanges candidates.
//
// A Puppet has one goroutine that reads the websocket and one that negotiates; the methods are safe for concurrent use,
// except that the packets of one Line are sent by one goroutine at a time.
package puppet
