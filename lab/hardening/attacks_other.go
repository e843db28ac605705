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
	return nil, fmt.Errorf("network namespaces are Linux's: %w", errors.ErrUnsupported)
}

// stage is where attacks take place.
type stage struct{}

func (*stage) close() {}
