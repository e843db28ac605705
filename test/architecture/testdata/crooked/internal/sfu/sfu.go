// Package sfu is above forward.
package sfu
