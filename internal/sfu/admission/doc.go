// Package admission decides which clients may enter rooms, as far as the decision does not depend on the content of the
// room.
//
// Operators exclude participants by bans and by revoked tokens (Exclusions). Each token, or address of clients without
// a token, holds a bounded number of rooms and places (Holdings), and causes the others in a room to receive a bounded
// number of bytes (Announcements).
package admission
