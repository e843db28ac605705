//go:build cgo

// Package draco may use cgo.
package draco

import "C"
