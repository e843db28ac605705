package signalling

import (
	"bytes"
	"errors"
	"io"
	"net"
	"testing"
	"time"
)

// sent is a connection over which a client has sent bytes, some at a time, none in the zero value. Writes are
// discarded.
type sent struct {
	net.Conn
	bytes.Reader
	step int
}

func (s *sent) Read(b []byte) (int, error)     { return s.Reader.Read(b[:min(len(b), s.step)]) }
func (*sent) Write(b []byte) (int, error)      { return len(b), nil }
func (*sent) Close() error                     { return nil }
func (*sent) SetDeadline(time.Time) error      { return nil }
func (*sent) SetReadDeadline(time.Time) error  { return nil }
func (*sent) SetWriteDeadline(time.Time) error { return nil }

// FuzzInbox: whatever a client sends on a websocket, messages are within the limit, and every byte that is no payload
// of a message counts as framing, except those in the buffer of the websocket.
func FuzzInbox(f *testing.F) {
	text := []byte{0x81, 0x83, 0, 0, 0, 0, '{', '}', ' '}
	f.Add(text, uint16(1))
	f.Add(append([]byte{0x89, 0x81, 1, 2, 3, 4, 5}, text...), uint16(4096))
	f.Add(bytes.Repeat([]byte{0x01, 0x80, 0, 0, 0, 0}, 3), uint16(5))
	f.Add(append([]byte{0x01, 0x80, 0, 0, 0, 0}, bytes.Repeat([]byte{0, 0x80, 0, 0, 0, 0}, 2000)...), uint16(4096))
	f.Add(append([]byte{0x82, 0xfe, 0x10, 0, 0, 0, 0, 0}, make([]byte, 0x1000)...), uint16(7))
	config := DefaultConfig()
	config.MessageBytes, config.JoinTimeout = 2048, 0
	config.MessageRate, config.MessageBurst, config.ByteRate, config.ByteBurst = 1e-9, 8, 1e-9, 1<<14
	f.Fuzz(func(t *testing.T, b []byte, step uint16) {
		i := NewInbox(open(t, &sent{Reader: *bytes.NewReader(b), step: int(step) + 1}, &config), &config)
		i.TakeControl(func() {})
		var payloads int64
		for {
			data, _, err := i.Read()
			if err != nil {
				if errors.Is(err, io.EOF) && len(b) > 0 && i.received != int64(len(b)) {
					t.Errorf("the websocket ends after %d of %d bytes: %v", i.received, len(b), err)
				}
				break
			}
			if payloads += int64(len(data)); len(data) > config.MessageBytes {
				t.Fatalf("a message has %d bytes", len(data))
			}
			if payloads != i.payloads {
				t.Fatalf("%d bytes of payload are counted, expected %d", i.payloads, payloads)
			}
		}
		const buffer = 4096
		if hidden := i.received - i.payloads - i.framed; hidden > buffer {
			t.Errorf("%d bytes are not counted", hidden)
		}
	})
}
