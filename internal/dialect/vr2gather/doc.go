// Package vr2gather implements the dialect of the original SFU, so that VR2Gather peers can take part in rooms. The
// data plane converts their packets.
//
// A Server accepts the peers' websockets and joins on their behalf. The package converts the peers' messages to
// signalling v1, and sends the peers the offers and candidates of the room. A peer is a participant like others, except
// for its profile: its publications are announced after their first frames, it receives only publications that it can
// read, and each of its lines carries one tile of one client, because session descriptions and packets name the client
// and the tile.
package vr2gather
