// Package volumetric defines the vocabulary of volsfu: rooms, participants, publications, tiles, qualities and tracks.
// The package contains only types with validation and printing, and has no dependencies. Values are plain data
// without an owner.
package volumetric
