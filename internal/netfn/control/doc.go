// Package control carries orders to edges and the state of edges to operators, as JSON over HTTP. An order names the
// copies of a rule, or starts and stops them.
//
//   - Local is the API of one edge, on a unix socket: operators and programs on the host, such as volsfu, use it.
//   - Controller holds the orders of operators for many edges. It listens with TLS and requires tokens.
//   - Link is the connection of an edge to a controller. It polls: the controller holds each request until there is an
//     order, for some seconds at most. An edge without a controller keeps the orders that it has.
//   - Socket and Operator are the clients of both APIs.
//
// The state of an edge is any JSON document; the controller stores it as bytes. A Controller is safe for concurrent
// use: one mutex guards its ledger, which is pure and stepped with the time. A Link belongs to the goroutine of Run.
package control

import (
	"context"
	"errors"
)

// Errors of requests.
var (
	// ErrOrder is the sentinel of an order that an edge does not carry out. The wrapping error has the reason.
	ErrOrder = errors.New("order refused")
	// ErrNoEdge: the controller does not know an edge of that name.
	ErrNoEdge = errors.New("unknown edge")
	// ErrUnauthorized: the request has no valid token.
	ErrUnauthorized = errors.New("unauthorized")
	// ErrForbidden: the token does not permit the request.
	ErrForbidden = errors.New("forbidden")
	// ErrFull: the controller has as many edges as it may have.
	ErrFull = errors.New("too many edges")
	// ErrLimited: the sender of the request has sent too many requests.
	ErrLimited = errors.New("too many requests")
	// ErrRequest is the sentinel of a request that cannot be read.
	ErrRequest = errors.New("invalid request")
	// ErrUnreachable: there is no answer. The edge is not running, or the controller cannot be reached.
	ErrUnreachable = errors.New("no answer")
)

// Edge is a running edge.
type Edge interface {
	// Status returns the state of the edge, which is encoded as JSON. Status may be called by several goroutines.
	Status() (any, error)
	// Apply carries out an order. The error wraps ErrOrder if the order names an unknown rule or path. Apply may be
	// called by several goroutines.
	Apply(Order) error
	// Detach removes the programs, maps and pins of the edge, and ends the edge. Detach returns when nothing is left,
	// or when the context ends.
	Detach(context.Context) error
}
