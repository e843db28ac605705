//go:build !linux

package fidelity

import (
	"context"

	"github.com/volsfu/volsfu/internal/lab"
	"github.com/volsfu/volsfu/internal/netem/router"
)

func (c cell) ping(context.Context) ([]lab.Line, error)     { return nil, router.ErrPrivileges }
func (c cell) sweep(context.Context) ([]lab.Line, error)    { return nil, router.ErrPrivileges }
func (c cell) overload(context.Context) ([]lab.Line, error) { return nil, router.ErrPrivileges }

func (s sustained) measure(context.Context) ([]lab.Line, error) { return nil, router.ErrPrivileges }

func loss(context.Context, float64, uint64) ([]lab.Line, error) { return nil, router.ErrPrivileges }

func marks(context.Context) ([]lab.Line, error) { return nil, router.ErrPrivileges }
