package link

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/volsfu/volsfu/internal/netem"
	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/lab/topology"
	"github.com/volsfu/volsfu/lab/topology/service"
)

func newExec() *cobra.Command {
	var name string
	cmd := &cobra.Command{
		Use:   "exec HOST -- COMMAND [ARGUMENT...]",
		Short: "Run a command on a host of a network that is up",
		Args:  cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, arguments []string) error {
			client, d, err := connect(cmd, name)
			if err != nil {
				return err
			}
			defer func() { _ = client.Close() }()
			var hosts []string
			for _, h := range d.Hosts {
				if h.Name != arguments[0] {
					hosts = append(hosts, h.Name)
					continue
				}
				command := topology.CommandIn(cmd.Context(), h.Namespace, h.Environment, arguments[1], arguments[2:]...)
				err := foreground(cmd, command, client.Ended())
				if errors.Is(err, service.ErrNetwork) {
					topology.EndCommandsOf(d.ID)
				}
				return err
			}
			return fmt.Errorf("%w: %q, expected one of %s", topology.ErrHost, arguments[0], strings.Join(hosts, ", "))
		},
	}
	nameFlag(cmd, &name)
	return cmd
}

// connect finds a network by its name and describes it. Without the flag, the name comes from the environment.
func connect(cmd *cobra.Command, name string) (*service.Client, *service.Description, error) {
	if named := os.Getenv(nameVariable); named != "" && !cmd.Flags().Changed("name") {
		name = named
	}
	client, err := service.Connect(name)
	if err != nil {
		return nil, nil, err
	}
	d, err := client.Describe()
	if err != nil {
		_ = client.Close()
		return nil, nil, err
	}
	return client, d, nil
}

func newList() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the networks that are up, and their hosts",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			list, err := service.List()
			if err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			if asJSON {
				encoder := json.NewEncoder(out)
				encoder.SetIndent("", "  ")
				return encoder.Encode(list)
			}
			for _, d := range list {
				fmt.Fprintf(out, "%s: %s, process %d, up for %v\n", d.Name, d.File, d.PID,
					time.Since(d.Began).Round(time.Second))
				writeHosts(out, d)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a list of JSON objects")
	return cmd
}

func newStatistics() *cobra.Command {
	var name string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "statistics",
		Short: "Print the statistics of a network's packets, and whether the network was in time",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, _, err := connect(cmd, name)
			if err != nil {
				return err
			}
			defer func() { _ = client.Close() }()
			summary, err := client.Statistics()
			if err != nil {
				return err
			}
			return lab.Print(cmd.OutOrStdout(), summary, asJSON)
		},
	}
	nameFlag(cmd, &name)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object instead of tables")
	return cmd
}

func newSet() *cobra.Command {
	var name string
	cmd := &cobra.Command{
		Use:   "set LINK PROFILE",
		Short: "Change a link of a network that is up",
		Long: `Change a link of a network that is up, in both directions, or in one with LINK/forth or LINK/back.

PROFILE is parameters such as delay=10ms,rate=50Mbit,queue=fq:50ms; the others are those of a link
without delay, loss and limit.
A trace and a schedule of the link end.`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, arguments []string) error {
			set, err := netem.ParseProfile(arguments[1])
			if err != nil {
				return err
			}
			link, way, one := strings.Cut(arguments[0], "/")
			ways := []topology.Way{topology.Forth, topology.Back}
			switch {
			case !one:
			case way == topology.Forth.String():
				ways = ways[:1]
			case way == topology.Back.String():
				ways = ways[1:]
			default:
				return fmt.Errorf("%w: %q, expected LINK, LINK/forth or LINK/back", topology.ErrLink, arguments[0])
			}
			client, _, err := connect(cmd, name)
			if err != nil {
				return err
			}
			defer func() { _ = client.Close() }()
			return client.Configure(link, set, ways...)
		},
	}
	nameFlag(cmd, &name)
	return cmd
}

func newRestart() *cobra.Command {
	return newOrder("restart", "Restart the traces, schedules and statistics of a network",
		(*service.Client).Restart)
}

func newDown() *cobra.Command {
	return newOrder("down", "End a network, and the commands on its hosts", (*service.Client).End)
}

// newOrder returns a command that sends an order to a network.
func newOrder(use, short string, order func(*service.Client) error) *cobra.Command {
	var name string
	cmd := &cobra.Command{
		Use:   use,
		Short: short,
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, _, err := connect(cmd, name)
			if err != nil {
				return err
			}
			defer func() { _ = client.Close() }()
			return order(client)
		},
	}
	nameFlag(cmd, &name)
	return cmd
}

func newCheck() *cobra.Command {
	return &cobra.Command{
		Use:   "check FILE",
		Short: "Check whether a file is a valid topology, without starting it; root is not required",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, arguments []string) error {
			t, err := topology.ReadFile(arguments[0])
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%d hosts, %d links, %d paths\n", len(t.Hosts), len(t.Links),
				len(t.Paths))
			return err
		},
	}
}
