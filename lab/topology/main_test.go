package topology_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/volsfu/volsfu/lab/topology"
)

// helperVariable makes the test program the process that a test kills.
const helperVariable = "TOPOLOGY_HELPER"

func TestMain(m *testing.M) {
	if os.Getenv(helperVariable) != "" {
		helper()
		return
	}
	goleak.VerifyTestMain(m)
}

// helper runs a network with a command that ends only when killed. The command prints its own process number and the
// number of a process that it has started.
func helper() {
	n, err := topology.Start(context.Background(), topology.Pair("a", "b", topology.Link{}))
	if err != nil {
		fmt.Println(err)
		return
	}
	cmd := n.Command(context.Background(), "a", "sh", "-c", "sleep 1000 & echo $$ $!; wait")
	cmd.Stdout = os.Stdout
	fmt.Println(cmd.Run(), n.Close())
}
