package hotpath

import (
	"context"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"github.com/volsfu/volsfu/lab/fanout"
)

// fanoutArgument makes this test program run the other server, as vollab does in its own measurements.
const fanoutArgument = "fanout"

func TestMain(m *testing.M) {
	if len(os.Args) >= 2 && os.Args[1] == fanoutArgument {
		sockets := fanout.Single
		if slices.Contains(os.Args, BatchedFlag) {
			sockets = fanout.Batched
		}
		ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
		err := fanout.Serve(ctx, sockets, os.Stderr)
		cancel()
		if err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// fanoutCommand returns the command of the other server.
func fanoutCommand(t *testing.T) []string {
	t.Helper()
	command, err := FanoutCommand()
	if err != nil {
		t.Fatal(err)
	}
	return command
}
