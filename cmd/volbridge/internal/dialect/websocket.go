package dialect

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/gorilla/websocket"

	"github.com/volsfu/volsfu/pkg/vr2gather"
)

const (
	// writeTimeout is the time limit for writing a message.
	writeTimeout = 10 * time.Second
	// maxMessage is the largest message in bytes: an offer has about 1 kB per media line, and a room has hundreds of
	// lines.
	maxMessage = 4 << 20
	// maxReason is the number of bytes of a server's refusal that are reported.
	maxReason = 200
)

// dial opens the websocket.
func dial(ctx context.Context, config Config) (*websocket.Conn, error) {
	address, err := config.address()
	if err != nil {
		return nil, err
	}
	header := http.Header{}
	if config.Token != "" {
		header.Set("Authorization", "Bearer "+config.Token)
	}
	dialer := *websocket.DefaultDialer
	dialer.TLSClientConfig = config.TLS
	conn, response, err := dialer.DialContext(ctx, address, header)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", config.URL, refusal(response, err))
	}
	conn.SetReadLimit(maxMessage)
	return conn, nil
}

// refusal returns the error for a websocket that was not opened.
func refusal(response *http.Response, err error) error {
	if response == nil {
		return err
	}
	switch response.StatusCode {
	case http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden:
		// The library keeps only the part of the body that was read with the header.
		reason, _ := io.ReadAll(io.LimitReader(response.Body, maxReason))
		return fmt.Errorf("%w: %s: %s", ErrRefused, response.Status, strings.TrimSpace(string(reason)))
	default:
		return fmt.Errorf("%w: %s", err, response.Status)
	}
}

// read reads messages until the websocket ends. A malformed message ends the session.
func (s *Session) read() {
	for {
		_, text, err := s.conn.ReadMessage()
		if err != nil {
			s.cancel(fmt.Errorf("%w: websocket: %w", ErrEnded, err))
			return
		}
		m, err := vr2gather.ParseMessage(text)
		if err != nil {
			s.cancel(fmt.Errorf("%w: %w", ErrEnded, err))
			return
		}
		select {
		case s.messages <- m:
		case <-s.ctx.Done():
			return
		}
	}
}

// write sends a message. write is called only by the negotiating goroutine.
func (s *Session) write(kind vr2gather.MessageType, value string) error {
	text, err := vr2gather.Message{Client: s.config.Query.Client, Type: kind, Value: value}.Append(nil)
	if err != nil {
		return err
	}
	if err := s.conn.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return err
	}
	return s.conn.WriteMessage(websocket.TextMessage, text)
}
