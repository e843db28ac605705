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
	"github.com/volsfu/volsfu/internal/peer/sight"
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
		Short: "Receive and decode what one producer sends",
		Long:  "Receive and decode what one producer sends. How it is sent is the producer's to say.",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), peer.NewLog(cmd.ErrOrStderr()))
		},
	}
	f := cmd.Flags()
	c.flags(f)
	f.StringVar(&c.viewpoint, "viewpoint", "",
		"CSV file with recorded head movements to look around by, 30 per second, in a loop")
	f.StringVar(&c.person, "viewpoint-of", "", "whose movements of that file; without, those of the first person there")
	f.BoolVar(&c.sameClock, "same-clock", false,
		"the producer has the clock of this host, as in another of its network namespaces: take no estimate for it")
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
	var trace *sight.Trace
	if c.viewpoint != "" {
		if trace, err = sight.Open(c.viewpoint, c.person); err != nil {
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
