package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/lab/agent/wire"
)

// Command returns the command vollab agent.
func Command() *cobra.Command {
	var listen, key string
	var c Config
	cmd := &cobra.Command{
		Use:   "agent",
		Short: "Run programs of the lab on this host for vollab run --hosts on another one",
		Long: "Run programs of the lab on this host for a controller, vollab run --hosts, that has the same key. The " +
			"agent starts only volsfu serve, vollab peer, vollab direct and vollab probe, with the flags that " +
			"experiments need, and ends them when the controller is gone.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer cancel()
			c.Log = slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil))
			return run(ctx, listen, key, c)
		},
	}
	f := cmd.Flags()
	f.StringVar(&listen, "listen", ":7490", "HOST:PORT on which the agent listens")
	f.StringVar(&key, "key", "lab.key", "file with the key of the lab, from vollab agent key")
	f.StringVar(&c.Data, "data", os.Getenv(lab.TestDataVariable), "folder of the test data, empty for none")
	f.StringVar(&c.Programs, "programs", "", "folder of the lab's programs; by default the folder of this program")
	cmd.AddCommand(&cobra.Command{
		Use:   "key FILE",
		Short: "Create a key, which all hosts of a lab have",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, arguments []string) error {
			if err := wire.CreateKey(arguments[0]); err != nil {
				return err
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s: copy this file to every host of the lab\n", arguments[0])
			return err
		},
	})
	return cmd
}

// run serves until the context ends.
func run(ctx context.Context, listen, key string, c Config) (err error) {
	if c.Key, err = wire.ReadKey(key); err != nil {
		return fmt.Errorf("--key: %w", err)
	}
	if c.Programs == "" {
		self, err := os.Executable()
		if err != nil {
			return err
		}
		c.Programs = filepath.Dir(self)
	}
	if c.Data != "" {
		if info, err := os.Stat(c.Data); err != nil || !info.IsDir() {
			return fmt.Errorf("--data: expected a folder, got %q", c.Data)
		}
	}
	listener, err := net.Listen("tcp", listen)
	if err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	a, err := New(ctx, c)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	c.Log.Info("listening", "address", listener.Addr().String())
	return a.Serve(ctx, listener)
}
