// Package present decides when received frames are shown. A publication shows one frame number at a time. All
// publications and the audio of a participant share one playout delay, so that data captured together is shown and
// played together. If a tile is missing when the frame is due, the tile of the previous frame is kept.
//
// All functions take explicit times by the server's clock, the clock of capture times. A Stage is owned by one
// goroutine.
package present
