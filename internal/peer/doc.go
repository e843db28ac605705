// Package peer is how a command joins a room: the flags that name the server, the room and the participant, the join
// itself, and the log of what happens in the room. volpeer and volbridge use it; the laboratory uses the packages below
// it.
//
// The packages below it are what several commands need to capture, to show and to measure: cameras, codecs,
// distribution, opus, render, save, sight and worth.
package peer
