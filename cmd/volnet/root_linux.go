package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/volsfu/volsfu/internal/auth"
	"github.com/volsfu/volsfu/internal/netfn/control"
	"github.com/volsfu/volsfu/internal/netfn/daemon"
	"github.com/volsfu/volsfu/internal/netfn/edge"
)

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:           "volnet",
		Short:         "Copy packets onto several paths and pass the first copy of each",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(newEdge(), newController(), newStatus(), newSet(), newDetach(), newCheck(), newVersion())
	return root
}

// newLog returns a logger to standard error with one JSON object per line.
func newLog() (*zap.Logger, error) {
	z := zap.NewProductionConfig()
	z.Sampling = nil
	z.DisableStacktrace = true
	return z.Build()
}

func newEdge() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "edge",
		Short: "Run one end of a pair: sender, receiver or both",
		Long: "Run one end of a pair: sender, receiver or both. The programs are removed when the command ends. " +
			"After a crash they keep running, and the next volnet edge with the same name takes them over.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			config, err := edge.Load(file)
			if err != nil {
				return err
			}
			log, err := newLog()
			if err != nil {
				return err
			}
			defer func() { _ = log.Sync() }()
			d, err := daemon.Start(config, version, log)
			if err != nil {
				return err
			}
			return failed(d.Run(cmd.Context()))
		},
	}
	configFlag(cmd, &file)
	return cmd
}

// configFlag adds the flag of the configuration file of an edge.
func configFlag(cmd *cobra.Command, file *string) {
	cmd.Flags().StringVar(file, "config", "/etc/volnet/volnet.yaml", "configuration file of the edge")
}

func newController() *cobra.Command {
	var config control.ControllerConfig
	keys := auth.DefaultConfig()
	cmd := &cobra.Command{
		Use:   "controller",
		Short: "Hold the orders of operators for edges, and the states of edges",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			if config.Keys, err = auth.NewKeyring(keys); err != nil {
				return err
			}
			log, err := newLog()
			if err != nil {
				return err
			}
			defer func() { _ = log.Sync() }()
			c, err := control.StartController(config, log)
			if err != nil {
				return err
			}
			log.Info("controller started", zap.Stringer("address", c.Address()))
			select {
			case err = <-c.Failed():
			case <-cmd.Context().Done():
				err = c.Stop()
			}
			return failed(err)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&config.Listen, "listen", ":8443", "address of the API")
	flags.StringVar(&config.TLSCert, "tls-cert", "", "certificate chain (PEM file)")
	flags.StringVar(&config.TLSKey, "tls-key", "", "private key of the certificate (PEM file)")
	flags.StringVar(&config.State, "state", "", "file of the orders; if empty, they end with the controller")
	flags.StringVar(&keys.KeyFile, "key-file", "", "file with the keys of tokens, one KID:SECRET per line")
	for _, name := range []string{"tls-cert", "tls-key", "key-file"} {
		_ = cmd.MarkFlagRequired(name)
	}
	return cmd
}

// target is the edge that a command is for: that of a configuration file on this host, or an edge of a controller.
type target struct {
	config, controller, tokenFile, edge string
}

func (t *target) flags(cmd *cobra.Command) {
	configFlag(cmd, &t.config)
	flags := cmd.Flags()
	flags.StringVar(&t.controller, "controller", "", "controller, https://HOST:PORT; if empty, the edge on this host")
	flags.StringVar(&t.tokenFile, "token-file", "", "file with a token with the grant admin, for the controller")
	flags.StringVar(&t.edge, "edge", "", "name of the edge, for the controller")
	cmd.MarkFlagsRequiredTogether("controller", "token-file")
	cmd.MarkFlagsMutuallyExclusive("controller", "config")
}

// requestTimeout is the time limit of a request: a controller holds an order for 5 s until the edge has carried it out.
const requestTimeout = 15 * time.Second

// socket returns a client for the edge on this host.
func (t *target) socket() (control.Socket, error) {
	if t.edge != "" {
		return control.Socket{}, fmt.Errorf("--edge is %q without --controller, expected both", t.edge)
	}
	config, err := edge.Load(t.config)
	if err != nil {
		return control.Socket{}, err
	}
	return control.NewSocket(daemon.SocketPath(config)), nil
}

func newStatus() *cobra.Command {
	var t target
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Print the state of the edge on this host, or of the edges of a controller",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), requestTimeout)
			defer cancel()
			if t.controller != "" {
				return t.listEdges(ctx, cmd, asJSON)
			}
			socket, err := t.socket()
			if err != nil {
				return err
			}
			document, err := socket.Status(ctx)
			if err != nil {
				return failed(err)
			}
			return failed(daemon.WriteStatus(cmd.OutOrStdout(), document, asJSON, time.Now()))
		},
	}
	t.flags(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON instead of tables")
	return cmd
}

// listEdges prints the edges of a controller, or the state of one of them.
func (t *target) listEdges(ctx context.Context, cmd *cobra.Command, asJSON bool) error {
	operator, err := control.NewOperator(t.controller, t.tokenFile)
	if err != nil {
		return err
	}
	var edges []control.EdgeState
	if t.edge == "" {
		edges, err = operator.Edges(ctx)
	} else {
		edges = make([]control.EdgeState, 1)
		edges[0], err = operator.Edge(ctx, t.edge)
	}
	if err != nil {
		return failed(err)
	}
	if asJSON {
		return failed(json.NewEncoder(cmd.OutOrStdout()).Encode(edges))
	}
	return failed(daemon.WriteEdges(cmd.OutOrStdout(), edges, time.Now()))
}

func newSet() *cobra.Command {
	var t target
	var order control.Order
	var limit time.Duration
	cmd := &cobra.Command{
		Use:   "set RULE COPIES",
		Short: "Set the copies of a rule, or start and stop its trigger",
		Long: "Set the copies of a rule: auto, off, all, configured (as the configuration has it), or names of paths " +
			"with commas between them; or start and stop the trigger of a rule with the copies auto: start, stop. " +
			"The rule \"-\" is every rule.",
		Example: "  volnet set conference all --for 10m\n  volnet set conference fibre,lte\n  volnet set - configured",
		Args:    cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, words []string) error {
			if order.Rule = words[0]; order.Rule == "-" {
				order.Rule = ""
			}
			if word := words[1]; word == control.Start || word == control.Stop {
				order.Trigger = word
			} else {
				order.Copies = word
			}
			order.For = control.Duration(limit)
			if err := order.Validate(); err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), requestTimeout)
			defer cancel()
			return t.order(ctx, cmd, order)
		},
	}
	t.flags(cmd)
	cmd.Flags().DurationVar(&limit, "for", 0, "end the order after this time; 0: never")
	return cmd
}

// order sends an order to the target. An order that the edge refuses is invalid use.
func (t *target) order(ctx context.Context, cmd *cobra.Command, order control.Order) error {
	var err error
	state := control.Applied
	if t.controller != "" {
		if t.edge == "" {
			return errors.New("--edge is missing, expected the name of an edge of the controller")
		}
		operator, invalid := control.NewOperator(t.controller, t.tokenFile)
		if invalid != nil {
			return invalid
		}
		state, err = operator.Order(ctx, t.edge, order)
	} else {
		socket, invalid := t.socket()
		if invalid != nil {
			return invalid
		}
		err = socket.Order(ctx, order)
	}
	if errors.Is(err, control.ErrOrder) {
		return err
	}
	if err == nil && state == control.Pending {
		fmt.Fprintln(cmd.OutOrStdout(), "pending: the edge has not answered its controller yet")
	}
	return failed(err)
}

func newDetach() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "detach",
		Short: "End the edge on this host, and remove its programs, maps and pins",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			config, err := edge.Load(file)
			if err != nil {
				return err
			}
			err = control.NewSocket(daemon.SocketPath(config)).Detach(cmd.Context())
			if errors.Is(err, control.ErrUnreachable) {
				// The edge is not running: something of an edge that has crashed may be left.
				err = edge.Detach(config, daemon.SocketPath(config))
			}
			return failed(err)
		},
	}
	configFlag(cmd, &file)
	return cmd
}

func newCheck() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Check configuration, privileges, kernel and interfaces without attaching anything",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			config, err := edge.Load(file)
			if err != nil {
				return err
			}
			if err := config.Check(); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "edge %s can run: %d paths to %s\n", config.Name, len(config.Paths),
				config.Peer)
			return nil
		},
	}
	configFlag(cmd, &file)
	return cmd
}
