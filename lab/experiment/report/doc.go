// Package report writes the results of experiments: a page with plots, the plots as SVG, JSON and CSV, text for a
// terminal, and an index of several reports. Package report has no state.
package report
