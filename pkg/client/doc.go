// Package client is the SDK of volsfu: it joins a room, publishes and receives tiles of volumetric video and audio, chooses qualities and
// reports statistics. It knows frames as bytes; encoding, decoding and showing them is the program's.
//
// A Session owns one websocket and one peer connection. One goroutine of its own handles signalling and negotiation, one asks for what is
// missing, and one paces what is sent, estimates what the uplink carries, and decides what is given up where that is too little; packets are
// taken on Pion's goroutine. What a program sees comes over the channels Events, Frames and Packets. A websocket that breaks is opened
// anew, and the session goes on, within the grace time that the server gives.
package client
