//go:build !linux

package router

import (
	"net"

	"github.com/volsfu/volsfu/internal/netem"
)

// Router moves packets between the namespaces of a plan, on Linux.
type Router struct{}

// Start fails with ErrPrivileges.
func Start(Plan) (*Router, error) { return nil, ErrPrivileges }

// Namespace returns "".
func (r *Router) Namespace(int) string { return "" }

// Inode returns ErrPrivileges.
func (r *Router) Inode(int) (uint64, error) { return 0, ErrPrivileges }

// Statistics returns zero.
func (r *Router) Statistics() Statistics { return Statistics{} }

// Restart has no effect.
func (r *Router) Restart() {}

// Configure returns net.ErrClosed.
func (r *Router) Configure(int, netem.Config) error { return net.ErrClosed }

// Inside returns ErrPrivileges.
func (r *Router) Inside(int, func() error) error { return ErrPrivileges }

// Close has no effect.
func (r *Router) Close() error { return nil }
