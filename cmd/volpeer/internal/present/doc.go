// Package present decides when what was received is shown. A publication is shown at one frame number at a time: frames
// wait for the playout delay of their participant, which all of that participant's publications and sound share, so
// that what was captured together is seen and heard together. Tiles that are missing when their time has come are kept
// from the frame before.
//
// Everything here is stepped with explicit times, all by the server's clock, in which captures are given. A Stage
// belongs to one goroutine.
package present
