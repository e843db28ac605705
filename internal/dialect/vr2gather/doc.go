// Package vr2gather lets the peers of the original SFU take part in rooms: the dialect of VR2Gather, apart from the
// conversion of packets, which is the data plane's.
//
// A Server takes the peers' websockets and joins for them. Their messages become those of signalling v1, and of what
// the room says the peers are told offers and candidates. A peer is a participant like others, with the differences
// that its profile states: its publications are announced once their first frames have come, it is sent only what it
// can read, and each of its lines carries one tile of one client, since session descriptions and packets name that.
package vr2gather
