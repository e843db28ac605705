//go:build !linux

package probe

import (
	"context"
	"net/netip"
	"time"
)

// Send sends nothing: the error is ErrUnsupported.
func Send(context.Context, Plan) ([]Departure, error) { return nil, ErrUnsupported }

// Receive receives nothing: the error is ErrUnsupported.
func Receive(context.Context, netip.AddrPort, int, time.Duration, func(netip.AddrPort)) ([]Arrival, error) {
	return nil, ErrUnsupported
}
