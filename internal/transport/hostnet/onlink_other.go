//go:build !linux

package hostnet

import (
	"errors"
	"net/netip"
)

// onLink cannot ask this system's kernel for routes.
func onLink(netip.Addr) (bool, error) { return false, errors.ErrUnsupported }
