//go:build !linux

package fidelity

import (
	"context"

	"github.com/volsfu/volsfu/internal/netem/router"
	"github.com/volsfu/volsfu/test/claim"
)

func (c cell) ping(context.Context) ([]claim.Line, error)     { return nil, router.ErrPrivileges }
func (c cell) sweep(context.Context) ([]claim.Line, error)    { return nil, router.ErrPrivileges }
func (c cell) overload(context.Context) ([]claim.Line, error) { return nil, router.ErrPrivileges }

func (s sustained) measure(context.Context) ([]claim.Line, error) { return nil, router.ErrPrivileges }

func loss(context.Context, float64, uint64) ([]claim.Line, error) { return nil, router.ErrPrivileges }

func marks(context.Context) ([]claim.Line, error) { return nil, router.ErrPrivileges }
