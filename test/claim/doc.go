// Package claim holds a measured figure against the target that a claim sets. Tests that measure log their lines, and
// checks of the lab read them.
package claim
