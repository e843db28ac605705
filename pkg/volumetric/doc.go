// Package volumetric holds the words that every part of volsfu uses: rooms, participants, publications, tiles, qualities and tracks.
// It has types only, no behaviour beyond validation and printing, and no dependencies. Its values are plain data; nobody owns them.
package volumetric
