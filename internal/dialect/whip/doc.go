// Package whip serves encoders and players that use WHIP (RFC 9725) and WHEP (draft-ietf-wish-whep-03).
//
// An encoder posts an offer and becomes a participant of a room with one publication of video and one of sound. A
// player posts an offer and becomes a participant that receives the video and the sound of one other participant. Both
// have the profile of a client that offers (sfu.Profile.Offers): the server answers the only offer, the client alone
// restarts ICE, and the session ends with DELETE, with the DTLS connection, or when the client no longer consents to
// receive packets.
//
// plan.go, which is pure, reads offers. A Session is the outbox of its participant; its requests wait for the room's
// answers. The address of a session is random, and whoever knows the address may change and end the session.
package whip
