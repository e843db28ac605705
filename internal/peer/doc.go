// Package peer joins a room on behalf of a command. The package has the flags of the server, the room and the
// participant, the join itself, and the log of the room's events. volpeer and volbridge use it; the laboratory uses
// only the packages below it.
//
// The packages below it are shared by commands that capture, show and measure: cameras, codecs, distribution, lod,
// opus, render, save and viewtrace.
package peer
