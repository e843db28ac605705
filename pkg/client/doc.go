// Package client is the SDK of volsfu: it joins a room, publishes and receives tiles of volumetric video and audio,
// chooses qualities and reports statistics. Frames are bytes to it. The program encodes, decodes and displays them.
//
// A Session owns one websocket and one peer connection. One goroutine handles signalling and negotiation (control). One
// asks for missing packets and sends reports (media.watch). One paces what is sent, estimates the uplink, and decides
// what is given up if the uplink is too narrow (media.send). Packets are received on the goroutine that reads the
// socket. The program reads the channels Events, Frames and Packets. A websocket that breaks is replaced, and the
// session continues, within the grace time that the server gives.
package client
