package paper000

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/volsfu/volsfu/lab/baseline"
	"github.com/volsfu/volsfu/lab/experiment"
	"github.com/volsfu/volsfu/lab/experiment/cast"
	"github.com/volsfu/volsfu/lab/experiment/direct"
)

// actor has the interface of vollab peer: it publishes a frame when asked to end.
const actor = `#!/bin/sh
while [ $# -gt 0 ]; do
	case "$1" in
	--summary) summary="$2"; shift ;;
	--records) records="$2"; shift ;;
	esac
	shift
done
finish() {
	echo '{"published":{"begun":"2026-01-01T00:00:00Z","captures":1},"received":{}}' >"$summary"
	record='{"participant":"publisher","publication":"body","tile":0,"quality":0,"frame":1,"bytes":9,'
	echo "$record"'"stamps_ns":{"captured":'$(date +%s%N)'}}' >"$records"
	exit 0
}
trap finish TERM
echo '{"ready":"127.0.0.1:4711"}' >&2
echo '{"receiving":"publisher"}' >&2
while :; do sleep 0.01; done
`

// TestLadderPublishesUntilTheEnd: the publisher continues after the run, until the last frames that count have arrived.
func TestLadderPublishesUntilTheEnd(t *testing.T) {
	programs := t.TempDir()
	if err := os.WriteFile(filepath.Join(programs, "vollab"), []byte(actor), 0o755); err != nil {
		t.Fatal(err)
	}
	settings := &experiment.Settings{Duration: 10 * time.Millisecond, Folder: t.TempDir(), Programs: programs}
	c, err := cast.Open(t.Context(), settings, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	l := &ladder{network: &network{cast: c, settings: settings, stage: &stage{Sender: senderPion}}}
	for _, player := range []**cast.Player{&l.publisher, &l.watcher} {
		if *player, err = c.Peer(t.Context(), hostSender, map[bool]string{true: "publisher",
			false: "watcher"}[player == &l.publisher]); err != nil {
			t.Fatal(err)
		}
		if err := (*player).Receiving(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	l.network.Metered = &direct.Metered{Began: time.Now()}
	f, err := l.wait(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(f.notes, baseline.PionDefect) {
		t.Errorf("the notes %q do not name the defect of Pion's congestion control", f.notes)
	}
	if least := (settings.Duration + drain).Seconds(); len(f.list) != 1 || f.list[0].At < least {
		t.Errorf("got %+v, expected a frame captured no sooner than %g s after the beginning", f.list, least)
	}
}
