package messages

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/pkg/client"
)

// Names of the participants and of the room.
const (
	Room     = "messages"
	Sender   = "sender"
	Receiver = "receiver"
)

// errMissing reports messages that did not arrive in time.
var errMissing = errors.New("messages are missing")

// options are the flags of vollab messages.
type options struct {
	server, token string
	receive       bool
	channel       bool
	lossy         bool
	count, bytes  int
	interval      time.Duration
	patience      time.Duration
}

// Result is the result of a receiver.
type Result struct {
	Received int `json:"received"`
	// Disordered counts reliable messages that came twice or out of order.
	Disordered int `json:"disordered"`
	// The delays from SendData to the arrival at the program, in milliseconds.
	Median float64 `json:"p50_ms"`
	P99    float64 `json:"p99_ms"`
	Max    float64 `json:"max_ms"`
}

// Command returns the command vollab messages.
func Command() *cobra.Command {
	o := options{count: 1000, bytes: 100, interval: 50 * time.Millisecond, patience: 20 * time.Second}
	cmd := &cobra.Command{
		Use:   "messages",
		Short: "Send data messages to a room, or receive them and print their delays",
		Long: "Send data messages to a room, or receive them and print their delays. Sender and receiver must run on " +
			"one host, whose clock measures the delays, for example in two network namespaces.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.receive {
				return o.receiveAll(cmd)
			}
			return o.sendAll(cmd.Context())
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.server, "server", "ws://127.0.0.1:8080", "address of the server")
	f.StringVar(&o.token, "token", "", "access token")
	f.BoolVar(&o.receive, "receive", false, "receive instead of sending")
	f.BoolVar(&o.channel, "message-channel", true, "use the message channel, besides the websocket")
	f.BoolVar(&o.lossy, "lossy", false, "send lossy messages")
	f.IntVar(&o.count, "count", o.count, "number of messages")
	f.IntVar(&o.bytes, "bytes", o.bytes, "size of a message in bytes")
	f.DurationVar(&o.interval, "interval", o.interval, "time between two messages")
	f.DurationVar(&o.patience, "patience", o.patience, "time without a message after which a receiver ends")
	return cmd
}

// join joins the room and waits until data channels can open.
func (o *options) join(ctx context.Context, identity string) (*client.Session, error) {
	s, err := client.Join(ctx, client.Config{
		URL: o.server, Token: o.token, Room: Room, Identity: identity, MessageChannel: o.channel,
	})
	if err != nil || !o.channel {
		return s, err
	}
	for e := range s.Events() {
		if _, ok := e.(client.Connected); ok {
			return s, nil
		}
	}
	return nil, s.Err()
}

// topic is the topic of the messages. lastTopic is that of the message after the last.
const (
	topic     = "delay"
	lastTopic = "end"
)

// sendAll sends the messages at equal times, whenever the replies come, and then a last one.
func (o *options) sendAll(ctx context.Context) (err error) {
	s, err := o.join(ctx, Sender)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ignoreClosed(s.Close())) }()
	if err := o.await(ctx, s, Receiver); err != nil {
		return err
	}
	var replies []<-chan error
	ticker := time.NewTicker(o.interval)
	defer ticker.Stop()
	padding := strings.Repeat(" ", max(0, o.bytes-20))
	for i := range o.count {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		text := fmt.Sprintf("%d %d%s", i, time.Now().UnixNano(), padding)
		reply, err := s.QueueData(client.Data{Topic: topic, Text: text, Lossy: o.lossy})
		if err != nil {
			return err
		}
		if reply != nil {
			replies = append(replies, reply)
		}
	}
	for _, reply := range replies {
		select {
		case err := <-reply:
			if err != nil {
				return err
			}
		case <-s.Done():
			return s.Err()
		}
	}
	return s.SendData(ctx, client.Data{Topic: lastTopic})
}

func ignoreClosed(err error) error {
	if errors.Is(err, client.ErrClosed) {
		return nil
	}
	return err
}

// await waits until a participant is in the room.
func (o *options) await(ctx context.Context, s *client.Session, identity string) error {
	ctx, cancel := context.WithTimeout(ctx, o.patience)
	defer cancel()
	for {
		for _, p := range s.Participants() {
			if p.Identity == identity {
				return nil
			}
		}
		select {
		case <-s.Events():
		case <-ctx.Done():
			return fmt.Errorf("%q is not in the room: %w", identity, ctx.Err())
		}
	}
}

// receiveAll receives messages until the last one, and prints the result as JSON.
func (o *options) receiveAll(cmd *cobra.Command) (err error) {
	s, err := o.join(cmd.Context(), Receiver)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ignoreClosed(s.Close())) }()
	var delays lab.Distribution
	result := Result{}
	next := int64(0)
	for {
		select {
		case m, open := <-s.Data():
			if !open {
				return s.Err()
			}
			if m.Topic == lastTopic {
				ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
				result.Received = delays.Count()
				result.Median, result.P99 = ms(delays.Percentile(0.5)), ms(delays.Percentile(0.99))
				result.Max = ms(delays.Percentile(1))
				return json.NewEncoder(cmd.OutOrStdout()).Encode(result)
			}
			number, sent, err := parse(m.Text)
			if err != nil {
				return err
			}
			if number < next || number > next && !m.Lossy {
				result.Disordered++
			}
			next = number + 1
			delays.Add(time.Since(sent))
		case <-time.After(o.patience):
			return fmt.Errorf("%w: none arrived for %v, after %d", errMissing, o.patience, delays.Count())
		case <-cmd.Context().Done():
			return cmd.Context().Err()
		}
	}
}

// parse returns the number of a message and the time of sending.
func parse(text string) (number int64, sent time.Time, err error) {
	fields := strings.Fields(text)
	if len(fields) != 2 {
		return 0, sent, fmt.Errorf("message %.40q: expected a number and a time", text)
	}
	number, err = strconv.ParseInt(fields[0], 10, 64)
	if err != nil {
		return 0, sent, err
	}
	stamp, err := strconv.ParseInt(fields[1], 10, 64)
	return number, time.Unix(0, stamp), err
}
