//go:build !linux

package awake

import "errors"

// Demand fails: only Linux has the kernel's file.
func Demand() (release func(), err error) { return nil, errors.ErrUnsupported }

// start does nothing: both mechanisms exist on Linux only.
func start() (stop func()) { return func() {} }
