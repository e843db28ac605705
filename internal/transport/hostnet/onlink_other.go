//go:build !linux

package hostnet

import (
	"errors"
	"net/netip"
)

// onLink returns errors.ErrUnsupported: this system's kernel cannot be asked for routes.
func onLink(netip.Addr) (bool, error) { return false, errors.ErrUnsupported }
