// Package claim compares a measured figure with the target of a claim. Tests log lines with their measurements, and
// checks of the lab read these lines.
package claim
