package peer

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/volsfu/volsfu/pkg/e2ee"
)

// TestKeyOrders executes a rotation, and goes on after orders that are wrong or too long. The log has no secret.
func TestKeyOrders(t *testing.T) {
	keys, log := new(e2ee.Keys), new(bytes.Buffer)
	orders := strings.Join([]string{
		"key 3:" + strings.Repeat("00", 32), "use 4", "", "key 4:" + strings.Repeat("ab", 8), "turn left",
		"key 4:" + strings.Repeat("ab", maxKeyOrder), "key 4:" + strings.Repeat("ab", 32) + " Zoë B", "use 4",
		"forget 3",
	}, "\r\n")
	ReadKeyOrders(strings.NewReader(orders), keys, slog.New(slog.NewTextHandler(log, nil)))
	if warnings := strings.Count(log.String(), "WARN"); warnings != 4 || strings.Contains(log.String(), "abab") {
		t.Errorf("the log is %q, expected 4 warnings without a secret", log)
	}
	if err := keys.Use(3); !errors.Is(err, e2ee.ErrSecret) {
		t.Errorf("the forgotten epoch can be used: %v", err)
	}
	sealer := e2ee.NewSealer(keys, "Zoë B")
	if _, err := sealer.Seal(nil, e2ee.Subject{Publication: "body"}, []byte("data")); err != nil {
		t.Errorf("the participant cannot encrypt: %v", err)
	}
	if _, err := e2ee.NewSealer(keys, "ada").Seal(nil, e2ee.Subject{Publication: "body"}, []byte("data")); err == nil {
		t.Error("another participant has a secret")
	}
}
