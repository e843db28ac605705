//go:build !linux

package hardening

import (
	"context"
	"errors"
	"fmt"

	"github.com/volsfu/volsfu/test/claim"
)

var attacks = []attack{{"none", "attacks on a server in network namespaces", refuse}}

func refuse(context.Context, *check) ([]claim.Line, error) {
	return nil, fmt.Errorf("network namespaces exist on Linux only: %w", errors.ErrUnsupported)
}

// stage is not implemented.
type stage struct{}

func (*stage) close() {}
