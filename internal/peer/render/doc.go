// Package render draws point clouds off the screen, so that the time at which a frame is shown exists on the command
// line, too. A Rasteriser draws one picture on all cores, without allocating; a Screen draws the newest of what it is
// given, and keeps the books of when it was drawn.
//
// A Rasteriser belongs to the goroutine that draws with it, its workers to the Rasteriser. A Screen's methods are safe
// for concurrent use; its goroutine owns its Rasteriser.
package render
