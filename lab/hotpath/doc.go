// Package hotpath measures what it costs a server to forward a packet, how long a packet stays in it, and what it loses: volsfu's own, and beside it
// the least server that Pion's own media path makes (package fanout). Publishers send prepared frames; receivers count media from the clear headers of RTP
// and decrypt none, but for one that takes times, so that what is measured has the machine almost for itself.
//
// A measurement belongs to the goroutine that calls it. Each client has a goroutine that reads its socket, each publisher one that sends frames.
package hotpath
