package control

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
)

func listen(t *testing.T, edge Edge) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "edge.sock")
	// A process that died has left a socket.
	write(t, path, nil)
	l, err := Listen(path, edge, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(context.Background()); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the socket is left: %v", err)
		}
	})
	return path
}

func TestSocket(t *testing.T) {
	edge := &recorder{}
	path := listen(t, edge)
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o660 {
		t.Errorf("the socket is %v, %v, expected the permissions 0660", info.Mode(), err)
	}
	s := NewSocket(path)
	if err := s.Order(t.Context(), Order{Rule: "conference", Trigger: Start, For: Duration(time.Second)}); err != nil {
		t.Error(err)
	}
	if got := edge.applied(); len(got) != 1 || got[0].Trigger != Start || got[0].For != Duration(time.Second) {
		t.Errorf("the orders are %+v", got)
	}
	if status, err := s.Status(t.Context()); err != nil || !strings.Contains(string(status), `"orders":1`) {
		t.Errorf("the state is %s, %v", status, err)
	}
	for name, test := range map[string]struct {
		order Order
		want  string
	}{
		"unknown rule":  {Order{Rule: "typo", Copies: "all"}, "order refused: there is no rule typo"},
		"invalid order": {Order{Rule: "conference"}, "order refused: expected copies or trigger"},
	} {
		if err := s.Order(t.Context(), test.order); !errors.Is(err, ErrOrder) || err.Error() != test.want {
			t.Errorf("%s: %v, expected %q", name, err, test.want)
		}
	}
	if err := s.requests.do(t.Context(), http.MethodPost, "/v1/orders", "text", nil); !errors.Is(err, ErrRequest) {
		t.Errorf("a body that is no order: %v", err)
	}
	if err := s.requests.do(t.Context(), http.MethodGet, "/v1/orders", nil, nil); err == nil {
		t.Error("orders can be read")
	}
	if err := s.Detach(t.Context()); err != nil || !edge.detached {
		t.Errorf("detaching: %v, detached is %v", err, edge.detached)
	}
}

func TestNoSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "edge.sock")
	if _, err := NewSocket(path).Status(t.Context()); !errors.Is(err, ErrUnreachable) {
		t.Errorf("without a socket: %v", err)
	}
	if _, err := Listen(filepath.Join(path, "below"), &recorder{}, zap.NewNop()); err == nil {
		t.Error("a socket in a folder that does not exist can be opened")
	}
}
