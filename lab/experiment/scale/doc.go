// Package scale measures one growing room: every participant publishes and watches all others. It has no state.
package scale
