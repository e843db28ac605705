//go:build !linux

package awake

import "errors"

// Demand fails: only Linux has the kernel's file.
func Demand() (release func(), err error) { return nil, errors.ErrUnsupported }

// start does nothing: both ways are Linux's.
func start() (stop func()) { return func() {} }
