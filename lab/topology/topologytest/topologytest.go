// Package topologytest starts emulated networks in tests.
package topologytest

import (
	"errors"
	"testing"

	"github.com/volsfu/volsfu/internal/netem/router"
	"github.com/volsfu/volsfu/lab/topology"
)

// Need skips the test if err reports that this process may not create a network, and fails the test with another error.
func Need(t testing.TB, err error) {
	t.Helper()
	if errors.Is(err, router.ErrPrivileges) || errors.Is(err, router.ErrTUN) {
		t.Skipf("skipped: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Start starts a network that ends with the test, or skips the test without root.
func Start(t testing.TB, layout *topology.Topology) *topology.Network {
	t.Helper()
	n, err := topology.Start(t.Context(), layout)
	Need(t, err)
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
	return n
}
