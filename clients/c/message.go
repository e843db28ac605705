//go:build cgo

package main

// #include "boundary.h"
import "C"

import (
	"fmt"
	"math"
	"unicode/utf8"

	"github.com/volsfu/volsfu/clients/c/internal/guest"
	"github.com/volsfu/volsfu/clients/c/internal/handle"
	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/signal"
)

//export volsfu_send_message
func volsfu_send_message(h C.volsfu_session, message *C.volsfu_outgoing_message_in) C.int32_t {
	return guarded(func() error {
		s, err := sessionOf(h)
		if err != nil {
			return err
		}
		if err := sized(
			"message", message, func(m *C.volsfu_outgoing_message_in) C.uint32_t { return m.size }); err != nil {
			return err
		}
		read, err := readMessage(message)
		if err != nil {
			return err
		}
		return s.SendData(read)
	})
}

func readMessage(m *C.volsfu_outgoing_message_in) (client.Data, error) {
	data := client.Data{Lossy: m.flags&C.VOLSFU_LOSSY != 0}
	if m.flags&^(C.VOLSFU_LOSSY|C.VOLSFU_BINARY) != 0 {
		return data, fmt.Errorf("%w: flags are %#x, expected VOLSFU_LOSSY and VOLSFU_BINARY", guest.ErrArgument,
			uint32(m.flags))
	}
	var err error
	if data.Topic, err = text("topic", m.topic, maxText); err != nil {
		return data, err
	}
	recipients, err := list("recipients", m.to, uint64(m.to_count), signal.MaxRecipients)
	if err != nil {
		return data, err
	}
	for _, recipient := range recipients {
		if err := given("recipient", recipient); err != nil {
			return data, err
		}
		to, err := text("recipient", recipient, maxText)
		if err != nil {
			return data, err
		}
		data.To = append(data.To, to)
	}
	payload, err := list("bytes", (*byte)(m.data), uint64(m.length), math.MaxInt32)
	switch {
	case err != nil:
		return data, err
	case m.flags&C.VOLSFU_BINARY == 0 && !utf8.Valid(payload):
		return data, fmt.Errorf("%w: the text is not UTF-8", guest.ErrArgument)
	case len(payload) > signal.MaxDataBytes:
		return data, fmt.Errorf("%w: %d bytes, expected at most %d", guest.ErrTooLarge, len(payload),
			signal.MaxDataBytes)
	case m.flags&C.VOLSFU_BINARY == 0:
		data.Text = string(payload)
	default:
		data.Binary = append([]byte{}, payload...)
	}
	return data, nil
}

//export volsfu_next_message
func volsfu_next_message(h C.volsfu_session, timeout C.int32_t, out *C.volsfu_message) C.int32_t {
	return guarded(func() error {
		s, err := sessionOf(h)
		if err != nil {
			return err
		}
		if err := sized("message", out, func(m *C.volsfu_message) C.uint32_t { return m.size }); err != nil {
			return err
		}
		if messages.Holds(handle.Handle(out.handle)) {
			return fmt.Errorf("message: %w", errHeld)
		}
		wait, err := patience(timeout)
		if err != nil {
			return err
		}
		message, err := s.NextMessage(wait)
		if err != nil {
			return err
		}
		return handMessage(s.Guest, &message, out)
	})
}

// handMessage copies a message to C.
func handMessage(g *guest.Guest, message *client.DataMessage, out *C.volsfu_message) error {
	data, flags := message.Binary, C.uint32_t(C.VOLSFU_BINARY)
	if message.Text != "" || data == nil {
		data, flags = []byte(message.Text), 0
	}
	if message.Lossy {
		flags |= C.VOLSFU_LOSSY
	}
	begin, places, err := block(data, []byte(message.From), []byte(message.Topic))
	if err != nil {
		g.ReleaseMessage(len(data))
		return err
	}
	size := out.size
	wipe(out)
	*out = C.volsfu_message{
		size:        size,
		flags:       flags,
		handle:      C.uint64_t(messages.Add(held{begin, len(data), g})),
		participant: (*C.char)(places[1]),
		topic:       (*C.char)(places[2]),
		data:        (*C.uint8_t)(places[0]),
		length:      C.size_t(len(data)),
		missed:      C.int64_t(message.Missed),
	}
	return nil
}

//export volsfu_release_message
func volsfu_release_message(message *C.volsfu_message) C.int32_t {
	return guarded(func() error {
		if err := sized("message", message, func(m *C.volsfu_message) C.uint32_t { return m.size }); err != nil {
			return err
		}
		if err := release(messages, message.handle, func(h held) { h.guest.ReleaseMessage(h.size) }); err != nil {
			return err
		}
		*message = C.volsfu_message{size: message.size}
		return nil
	})
}
