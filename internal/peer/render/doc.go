// Package render draws point clouds without a display, so that command-line programs also have a time at which a frame
// is shown. A Rasteriser draws one picture on all cores without allocating. A Screen draws the newest frame of each
// object and records the times of drawing.
//
// A Rasteriser is owned by the goroutine that draws with it, and owns its workers. The methods of a Screen are safe for
// concurrent use; the goroutine owns its Rasteriser.
package render
