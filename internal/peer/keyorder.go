package peer

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"

	"github.com/volsfu/volsfu/pkg/e2ee"
)

// errKeyOrder is returned for a line that is not an order about secrets.
var errKeyOrder = errors.New("expected key EPOCH:HEX, with an identity behind a space if the secret is of one " +
	"participant, use EPOCH, or forget EPOCH")

// maxKeyOrder bounds an order: a secret of 128 characters and an identity of 128 have less than a tenth of this.
const maxKeyOrder = 4 << 10

// ReadKeyOrders reads orders about secrets of end-to-end encryption, one per line, until the input ends: "key
// EPOCH:HEX", followed by an identity if the secret is of one participant, "use EPOCH", and "forget EPOCH". Orders that
// cannot be executed are logged, without their secrets.
func ReadKeyOrders(in io.Reader, keys *e2ee.Keys, log *slog.Logger) {
	reader := bufio.NewReaderSize(in, maxKeyOrder)
	for {
		line, rest, err := reader.ReadLine()
		if err != nil {
			return
		}
		long := rest
		for rest && err == nil {
			_, rest, err = reader.ReadLine()
		}
		text := strings.TrimSpace(string(line))
		switch {
		case long:
			log.Warn("an order about secrets is too long", "limit", maxKeyOrder)
		case text != "":
			if err := applyKeyOrder(keys, text); err != nil {
				log.Warn("an order about secrets cannot be executed", "error", err)
			}
		}
	}
}

// applyKeyOrder executes one order. The error does not contain secrets.
func applyKeyOrder(keys *e2ee.Keys, order string) error {
	verb, rest, _ := strings.Cut(order, " ")
	if verb == "key" {
		line, err := parseKeyLine(rest)
		if err != nil {
			return fmt.Errorf("key: %w", err)
		}
		return line.set(keys)
	}
	epoch, err := strconv.ParseUint(rest, 10, 16)
	switch {
	case verb == "use" && err == nil:
		return keys.Use(e2ee.Epoch(epoch))
	case verb == "forget" && err == nil:
		keys.Forget(e2ee.Epoch(epoch))
		return nil
	default:
		return errKeyOrder
	}
}
