package fanout

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/volsfu/volsfu/lab"
)

// Serve runs a server on loopback, on ports chosen by the system, until the context ends. Serve reports the server's
// address in one line of JSON with the keys of volsfu's log.
func Serve(ctx context.Context, sockets Sockets, log io.Writer) error {
	s, err := Listen("127.0.0.1:0", sockets)
	if err != nil {
		return err
	}
	if err := json.NewEncoder(log).Encode(lab.Ready{Signalling: "http://" + s.Address() + "/"}); err != nil {
		_ = s.Close()
		return fmt.Errorf("report the server's address: %w", err)
	}
	<-ctx.Done()
	return s.Close()
}
