// Package scale measures one room that grows: everybody publishes, everybody watches everybody else. It has no state.
package scale
