//go:build !linux

package probe

import (
	"context"
	"net/netip"
	"time"
)

// Send returns ErrUnsupported.
func Send(context.Context, Plan) ([]Departure, error) { return nil, ErrUnsupported }

// Receive returns ErrUnsupported.
func Receive(context.Context, netip.AddrPort, int, time.Duration, func(netip.AddrPort)) ([]Arrival, error) {
	return nil, ErrUnsupported
}
