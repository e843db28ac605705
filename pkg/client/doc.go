// Package client is the SDK of volsfu. It joins a room, publishes and receives tiles of volumetric video and audio,
// chooses qualities and reports statistics. Frames are opaque bytes. The program encodes, decodes and displays them.
//
// A Session owns one websocket and one peer connection. One goroutine handles signalling and negotiation (control). One
// requests missing packets and sends reports (watcher). One paces the packets, estimates the uplink, and decides
// which tracks to pause if the uplink is too narrow (sending). Packets are received on the goroutine that reads the
// socket. The program reads the channels Events, Frames and Packets. If the websocket breaks, the session opens another
// one and continues, within the grace period of the server: on the same server or, in a cluster, on another.
package client
