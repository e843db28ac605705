// Package admission decides which clients may enter rooms, as far as the decision does not depend on the content of the
// room, and has the settings by which the API limits a room.
//
// Operators exclude participants by bans and by revoked tokens (Exclusions). Each token, or address of clients without
// a token, holds a bounded number of rooms and places (Holdings), and causes the others in a room to receive a bounded
// number of bytes (Announcements). RoomSettings bound the participants of one room, their publications and their bit
// rates, and the time for which the room remains empty.
package admission
