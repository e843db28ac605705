package rival

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/netem"
	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/lab/topology"
	"github.com/volsfu/volsfu/lab/topology/topologytest"
	"github.com/volsfu/volsfu/test/wait"
)

// fakePrograms writes programs that append their names and arguments to a file and wait for their end, and returns the
// folder and the file.
func fakePrograms(t *testing.T, names ...string) (folder, calls string) {
	t.Helper()
	folder = t.TempDir()
	calls = filepath.Join(folder, "calls")
	text := "#!/bin/sh\necho \"$(basename $0) $*\" >>" + calls + "\nexec sleep 60\n"
	for _, name := range names {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return folder, calls
}

// TestExternalPrograms: the programs of others get the addresses and the rates of the run, in their own form.
func TestExternalPrograms(t *testing.T) {
	n := topologytest.Start(t, topology.Pair("a", "b", topology.Duplex(netem.Config{})))
	for _, test := range []struct {
		find  func(string) (*External, error)
		names [2]string // sender and receiver
		want  []string
	}{
		{Scream, [2]string{"scream_bw_test_tx", "scream_bw_test_rx"}, []string{
			"scream_bw_test_rx 198.18.0.1 30000",
			"scream_bw_test_tx -ect 1 -fps 30 -rand 0 -initrate 12500 -minrate 2000 -maxrate 90000 -time 40 " +
				"198.18.0.2 30000",
		}},
		{UDPPrague, [2]string{"udp_prague_sender", "udp_prague_receiver"}, []string{
			"udp_prague_receiver -a 198.18.0.2 -p 30000 --rtmode --rfc8888 -q",
			"udp_prague_sender -c -a 198.18.0.2 -p 30000 -b 90000 --rtmode --fps 30 --frameduration 20000 --rfc8888 -q",
		}},
	} {
		folder, calls := fakePrograms(t, test.names[:]...)
		e, err := test.find(folder)
		if err != nil {
			t.Fatal(err)
		}
		flow, err := e.Start(t.Context(), n, "a", "b", Bounds{2e6, 12.5e6, 90e6}, 40*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		written := func() []string {
			text, _ := os.ReadFile(calls)
			return strings.Split(strings.TrimSpace(string(text)), "\n")
		}
		wait.Until(t, "both programs have started", func() bool { return len(written()) == 2 })
		if err := flow.Failure(); err != nil {
			t.Error(err)
		}
		flow.Stop()
		for _, want := range test.want {
			if text := written(); text[0] != want && text[1] != want {
				t.Errorf("called %q, expected %q", text, want)
			}
		}
	}
}

// TestExternalMissing: a missing program is named, with the folder.
func TestExternalMissing(t *testing.T) {
	folder, _ := fakePrograms(t, "scream_bw_test_tx")
	for name, find := range map[string]func(string) (*External, error){
		"scream_bw_test_rx": Scream, "udp_prague_sender": UDPPrague,
	} {
		if _, err := find(folder); !errors.Is(err, lab.ErrProgram) || !strings.Contains(err.Error(), name) ||
			!strings.Contains(err.Error(), folder) {
			t.Errorf("%v, expected the name of %s and the folder", err, name)
		}
	}
	if _, err := Scream(""); !errors.Is(err, lab.ErrProgram) {
		t.Errorf("without a folder: %v", err)
	}
}
