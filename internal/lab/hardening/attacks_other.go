//go:build !linux

package hardening

import (
	"context"
	"errors"
	"fmt"

	"github.com/volsfu/volsfu/internal/lab"
)

type attack struct {
	title string
	run   func(context.Context, *check) ([]lab.Line, error)
}

var attacks = []attack{{"attacks on a server in network namespaces", func(context.Context, *check) ([]lab.Line, error) {
	return nil, fmt.Errorf("network namespaces are Linux's: %w", errors.ErrUnsupported)
}}}
