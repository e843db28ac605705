// Package plot draws the laboratory's diagrams as SVG: panels one below the other over the same horizontal axis, with
// curves, bars and their intervals, and one legend. Scales, ticks, fonts and layout are those of gonum.org/v1/plot;
// what this package adds is what all diagrams have in common, so that they look alike.
//
// It has no state.
package plot
