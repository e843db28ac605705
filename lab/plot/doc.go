// Package plot draws the laboratory's diagrams as SVG: panels below each other over a common horizontal axis, with
// curves, bars, error bars and one legend. Scales, ticks, fonts and layout are those of gonum.org/v1/plot. Package plot
// adds the common style of all diagrams.
//
// Package plot has no state.
package plot
