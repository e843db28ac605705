package direct

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/netip"

	"github.com/spf13/cobra"

	"github.com/volsfu/volsfu/internal/peer"
	"github.com/volsfu/volsfu/internal/peer/render"
	"github.com/volsfu/volsfu/internal/peer/viewtrace"
	"github.com/volsfu/volsfu/lab/direct/rendezvous"
)

// consuming has the flags of vollab direct consume.
type consuming struct {
	direct
	viewpoint string
	person    string
	sameClock bool
	render    render.Flags
}

func newConsume() *cobra.Command { return newConsumeOf(&consuming{}) }

func newConsumeOf(c *consuming) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "consume",
		Short: "Receive and decode the frames of one producer",
		Long:  "Receive and decode the frames of one producer. The producer selects the transport and the mode.",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), peer.NewLog(cmd.ErrOrStderr()))
		},
	}
	f := cmd.Flags()
	c.flags(f)
	f.StringVar(&c.viewpoint, "viewpoint", "",
		"CSV file with recorded viewpoints, 30 per second, that are replayed in a loop")
	f.StringVar(&c.person, "viewpoint-of", "", "participant in that file; the default is the first one")
	f.BoolVar(&c.sameClock, "same-clock", false,
		"the producer uses the clock of this host, for example in another network namespace: do not estimate an offset")
	c.render.Add(f)
	return cmd
}

// clock returns the estimator of the producer's clock. On the same host, both clocks are equal.
func (c *consuming) clock(producer netip.Addr) *rendezvous.Clock {
	return rendezvous.NewClock(c.sameClock || producer.IsLoopback())
}

// run consumes until the context ends, the time limit is reached, or the other side ends.
func (c *consuming) run(ctx context.Context, out, console io.Writer, log *slog.Logger) (err error) {
	if err := c.check(); err != nil {
		return err
	}
	var trace *viewtrace.Trace
	if c.viewpoint != "" {
		if trace, err = viewtrace.Open(c.viewpoint, c.person); err != nil {
			return fmt.Errorf("--viewpoint: %w", err)
		}
	}
	easel, err := newEasel(&c.render, log)
	if err != nil {
		return err
	}
	defer easel.close()
	books, err := c.books()
	if err != nil {
		return err
	}
	conn, err := c.meet(ctx, log)
	if err != nil {
		_, closing := books.End(0)
		return errors.Join(err, closing)
	}
	defer conn.Close()
	r := &receiver{
		flags: c, trace: trace, easel: easel, books: books, conn: conn, console: console, log: log,
		clock: c.clock(conn.Remote()), negotiation: make(chan rendezvous.Message, negotiationBacklog),
	}
	summary, err := r.run(ctx)
	err = errors.Join(err, summary.print(out, c.json))
	if err == nil && summary.Decoded == 0 {
		err = ErrNothing
	}
	return err
}
