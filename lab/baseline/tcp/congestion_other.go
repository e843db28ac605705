//go:build !linux

package tcp

import "errors"

func setCongestion(uintptr, string) error { return errors.ErrUnsupported }

func congestion(uintptr) string { return "" }
