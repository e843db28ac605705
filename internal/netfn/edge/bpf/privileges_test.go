package bpf

import (
	"errors"
	"runtime"
	"testing"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// TestPrivileges loads all programs and maps with CAP_BPF and CAP_NET_ADMIN only, as volnet's user has them. Without
// CAP_PERFMON the verifier refuses spin locks and packet offsets that are no constants.
func TestPrivileges(t *testing.T) {
	loadInto(t, unpinned(t, LoadSender), &SenderMaps{}) // skips without privileges
	err := restricted(func() error {
		sender, receiver := &SenderObjects{}, &ReceiverObjects{}
		err := errors.Join(loadWithout(LoadSender, sender), loadWithout(LoadReceiver, receiver))
		_, _ = sender.Close(), receiver.Close()
		return err
	})
	var refused *ebpf.VerifierError
	if errors.As(err, &refused) {
		t.Fatalf("%+v", refused)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// restricted calls f on a thread that has only the capabilities CAP_BPF and CAP_NET_ADMIN.
func restricted(f func() error) error {
	done := make(chan error, 1)
	go func() {
		// The thread ends with this goroutine, which does not unlock it.
		runtime.LockOSThread()
		header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var sets [2]unix.CapUserData
		for _, c := range []uint{unix.CAP_BPF, unix.CAP_NET_ADMIN} {
			sets[c/32].Effective |= 1 << (c % 32)
		}
		for i := range sets {
			sets[i].Permitted = sets[i].Effective
		}
		if err := unix.Capset(&header, &sets[0]); err != nil {
			done <- err
			return
		}
		done <- f()
	}()
	return <-done
}

// loadWithout loads the objects without pins.
func loadWithout(load func() (*ebpf.CollectionSpec, error), objects any) error {
	spec, err := load()
	if err != nil {
		return err
	}
	for _, m := range spec.Maps {
		m.Pinning = ebpf.PinNone
	}
	return spec.LoadAndAssign(objects, &ebpf.CollectionOptions{Programs: ebpf.ProgramOptions{LogSizeStart: 64 << 20}})
}
