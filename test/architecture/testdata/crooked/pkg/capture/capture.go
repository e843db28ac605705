//go:build windows

// Package capture uses cgo where it must not.
package capture

import "C"
