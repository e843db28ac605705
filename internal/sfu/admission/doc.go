// Package admission decides who may come into rooms, as far as that does not depend on what is in them.
//
// Operators keep participants out by bans and by revoked tokens (Exclusions). Each token, or address of clients
// without a token, holds a bounded number of rooms and places (Holdings), and may have the others of a room be told a
// bounded number of bytes (Announcements).
package admission
