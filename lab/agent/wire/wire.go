// Package wire is the protocol between an agent (vollab agent) and a controller (vollab run --hosts): messages in JSON,
// each after its length, over TLS 1.3 between two sides that have the same key.
//
// A Conn may be used by one reader and any number of writers at the same time.
package wire

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/lab/agent/role"
	"github.com/volsfu/volsfu/lab/environment"
)

// Protocol is the version of the protocol. Both sides have the same version.
const Protocol = 1

// Errors of a connection.
var (
	// ErrMessage reports a message that is too long or malformed.
	ErrMessage = errors.New("malformed message")
	// ErrKey reports that the other side has another key.
	ErrKey = errors.New("the other side has another key")
	// ErrKeyFile reports a file without a key.
	ErrKeyFile = errors.New("expected a key of vollab agent key")
)

const (
	// MaxMessage is the largest message in bytes. Chunks of files and output are smaller.
	MaxMessage = 1 << 20
	// Chunk is the largest part of a file in one message: 256 KiB are 342 KiB in base64.
	Chunk = 256 << 10
	// writeTimeout is the time limit for a message to enter the socket: for so long the other side may not read.
	writeTimeout = 15 * time.Second
)

// Type is the type of a message. The comments name the fields of Message that the type has.
type Type string

// The messages of a controller.
const (
	// TypeHello is the first message of a connection: Hello.
	TypeHello Type = "hello"
	// TypePing keeps a connection: the agent answers with the same message. No fields.
	TypePing Type = "ping"
	// TypeInput is a part of a file that a process will read: Process, File.
	TypeInput Type = "input"
	// TypeStart starts a process: Process, Start.
	TypeStart Type = "start"
	// TypeStop sends SIGTERM to a process, TypeKill ends it: Process.
	TypeStop Type = "stop"
	TypeKill Type = "kill"
	// TypeUsage asks for processor times: Usage. The answer has the same number.
	TypeUsage Type = "usage"
	// TypeClock asks for the time: Clock. It is for connections with PurposeClock.
	TypeClock Type = "clock"
)

// The other messages of an agent.
const (
	// TypeWelcome answers TypeHello: Welcome.
	TypeWelcome Type = "welcome"
	// TypeRefused ends a connection: Text.
	TypeRefused Type = "refused"
	// TypeOutput is a part of a process's output: Process, Stream, Data.
	TypeOutput Type = "output"
	// TypeFile is a part of a file that a process has written: Process, File.
	TypeFile Type = "file"
	// TypeEnded reports the end of a process, after its files: Process, Status, Text.
	TypeEnded Type = "ended"
)

// Message is a message. Type determines the fields.
type Message struct {
	Type    Type     `json:"type"`
	Hello   *Hello   `json:"hello,omitempty"`
	Welcome *Welcome `json:"welcome,omitempty"`
	// Process is the number of a process, chosen by the controller.
	Process int    `json:"process,omitempty"`
	Start   *Start `json:"start,omitempty"`
	File    *File  `json:"file,omitempty"`
	// Stream is 1 for standard output and 2 for standard error.
	Stream int    `json:"stream,omitempty"`
	Data   []byte `json:"data,omitempty"`
	Usage  *Usage `json:"usage,omitempty"`
	Clock  *Clock `json:"clock,omitempty"`
	// Status is the exit status of a process, -1 if the process did not start or was killed. Text explains a status
	// other than 0, or a refusal.
	Status int    `json:"status,omitempty"`
	Text   string `json:"text,omitempty"`
}

// Purpose is the use of a connection.
type Purpose string

// The purposes. A connection for the clock carries nothing else, so that its messages do not wait behind files.
const (
	PurposeControl Purpose = "control"
	PurposeClock   Purpose = "clock"
)

// Hello introduces a controller.
type Hello struct {
	Protocol int     `json:"protocol"`
	Purpose  Purpose `json:"purpose"`
}

// Welcome describes an agent.
type Welcome struct {
	Protocol int `json:"protocol"`
	// Platform is the operating system and the architecture, as in linux/amd64.
	Platform string `json:"platform"`
	// Programs are the SHA-256 sums of the lab's programs that the host has, by name.
	Programs map[string]string `json:"programs"`
	// Environment describes the host.
	Environment *environment.Environment `json:"environment"`
	// PTP is the state of the host's clock by the precision time protocol, nil without ptp4l. PTPError explains the
	// absence.
	PTP      *PTP   `json:"ptp,omitempty"`
	PTPError string `json:"ptp_error,omitempty"`
}

// Start has the program and the arguments of a process.
type Start struct {
	Program   string          `json:"program"`
	Arguments []role.Argument `json:"arguments"`
}

// File is a part of a file. Last is set in the last part.
type File struct {
	Name string `json:"name"`
	Data []byte `json:"data,omitempty"`
	Last bool   `json:"last,omitempty"`
}

// Usage has processor times. Number distinguishes questions.
type Usage struct {
	Number int `json:"number"`
	// Process is the number of the process, 0 for none.
	Process int `json:"process"`
	// Time is the processor time of the process.
	Time time.Duration `json:"time_ns"`
	// Machine is the time of all processors.
	Machine lab.MachineTime `json:"machine"`
}

// Clock is an exchange of times, in nanoseconds since 1970: Asked by the controller's clock, the others by the agent's.
type Clock struct {
	Asked    int64 `json:"asked_ns"`
	Received int64 `json:"received_ns,omitempty"`
	Answered int64 `json:"answered_ns,omitempty"`
}

// Conn is a connection.
type Conn struct {
	conn net.Conn

	mu     sync.Mutex
	buffer []byte
}

// NewConn returns a connection over an established one.
func NewConn(c net.Conn) *Conn { return &Conn{conn: c} }

// Remote returns the address of the other side.
func (c *Conn) Remote() string { return c.conn.RemoteAddr().String() }

// Close closes the connection. Send and Receive return errors then.
func (c *Conn) Close() error { return c.conn.Close() }

// Send sends a message. After an error the connection is useless.
func (c *Conn) Send(m *Message) error {
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	if len(text) > MaxMessage {
		return fmt.Errorf("%w: %s has %d bytes, expected at most %d", ErrMessage, m.Type, len(text), MaxMessage)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.buffer = append(binary.BigEndian.AppendUint32(c.buffer[:0], uint32(len(text))), text...)
	if err := c.conn.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return err
	}
	_, err = c.conn.Write(c.buffer)
	return err
}

// Receive returns the next message. Without a message within the patience, the error is os.ErrDeadlineExceeded. Errors
// of malformed messages wrap ErrMessage.
func (c *Conn) Receive(patience time.Duration) (*Message, error) {
	if err := c.conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
		return nil, err
	}
	return Read(c.conn)
}

// Read reads a message.
func Read(from io.Reader) (*Message, error) {
	var head [4]byte
	if _, err := io.ReadFull(from, head[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n > MaxMessage {
		return nil, fmt.Errorf("%w: %d bytes, expected at most %d", ErrMessage, n, MaxMessage)
	}
	text := make([]byte, n)
	if _, err := io.ReadFull(from, text); err != nil {
		return nil, err
	}
	var m Message
	if err := json.Unmarshal(text, &m); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMessage, err)
	}
	return &m, nil
}
