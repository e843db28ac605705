// Package plot draws the laboratory's diagrams as SVG: panels below each other over a common horizontal axis, with
// curves, bars, error bars and one legend. Scales, ticks, fonts and layout are those of gonum.org/v1/plot; this package
// adds the common style of all diagrams.
//
// The package has no state.
package plot
