package cluster

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/volsfu/volsfu/internal/netem/router"
)

// ownNetworkVariable is the environment variable with the network namespace that this process has entered.
const ownNetworkVariable = "VOLLAB_OWN_NETWORK"

// enterOwnNetwork moves this process into a network namespace of its own, by starting its program again: the namespace
// belongs to a thread, and only a new program has no other threads. If the process is in such a namespace already,
// enterOwnNetwork does nothing. Otherwise enterOwnNetwork returns only with an error.
func enterOwnNetwork() error {
	if inOwnNetwork() {
		return nil
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	// The thread stays in the new namespace if the start fails, so no other goroutine may use the thread.
	runtime.LockOSThread()
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		if errors.Is(err, unix.EPERM) {
			return fmt.Errorf("%w: %w", router.ErrPrivileges, err)
		}
		return fmt.Errorf("create a network namespace: %w", err)
	}
	entered, err := os.Readlink("/proc/thread-self/ns/net")
	if err != nil {
		return err
	}
	return unix.Exec(self, os.Args, append(os.Environ(), ownNetworkVariable+"="+entered))
}

// inOwnNetwork reports whether enterOwnNetwork has moved this process.
func inOwnNetwork() bool {
	present, err := os.Readlink("/proc/self/ns/net")
	return err == nil && os.Getenv(ownNetworkVariable) == present
}
