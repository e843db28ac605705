// Package scale measures one growing room: every participant publishes and watches all others. Package scale has no
// state.
package scale
